// SPDX-License-Identifier: GPL-2.0-or-later

// The command goodput-quicgo downloads a number of bytes over QUIC with quic-go.
package main

import (
	"flag"
	"time"

	"quicgo/internal/cli"
	"quicgo/internal/download"
	"quicgo/internal/endpoint"
	"quicgo/internal/output"
)

func main() {
	cli.Main("goodput-quicgo", map[string]cli.Role{"server": server, "client": client})
}

func server(flags *flag.FlagSet) func() error {
	var transport endpoint.Transport
	transport.Register(flags)
	listen := flags.String("listen", "", "`address:port`; port 0: any, which is then printed")
	return func() error {
		config, err := transport.Config()
		if err != nil {
			return err
		}
		ctx := endpoint.Termination()
		socket, err := endpoint.Listen(*listen)
		if err != nil {
			return err
		}
		return endpoint.Serve(ctx, socket, config, download.Handle)
	}
}

func client(flags *flag.FlagSet) func() error {
	var transport endpoint.Transport
	transport.Register(flags)
	connect := flags.String("connect", "", "the server's `address:port`")
	bytes := flags.Uint64("bytes", 0, "how much to ask for")
	timeout := flags.Float64("timeout", 120, "`seconds` after which to give up")
	file := flags.String("json", "", "also write the result to this `file`")
	return func() error {
		if *timeout <= 0 || *timeout > 1e6 {
			return cli.Usagef("--timeout: not a time in seconds")
		}
		config, err := transport.Config()
		if err != nil {
			return err
		}
		client, err := endpoint.NewClient(*connect)
		if err != nil {
			return err
		}
		defer client.Close()
		result, err := download.Run(client, config, *bytes, time.Duration(*timeout*1e9))
		if wrote := output.JSON(result, *file); wrote != nil {
			return wrote
		}
		return err
	}
}
