// SPDX-License-Identifier: GPL-2.0-or-later

// The command http-quicgo downloads a number of bytes over HTTP/3 with quic-go.
package main

import (
	"crypto/tls"
	"flag"
	"time"

	"quicgo/internal/cli"
	"quicgo/internal/endpoint"
	"quicgo/internal/output"
	"quicgo/internal/web"
)

func main() {
	cli.Main("http-quicgo", map[string]cli.Role{"server": server, "client": client})
}

func server(flags *flag.FlagSet) func() error {
	var transport endpoint.Transport
	transport.Register(flags)
	listen := flags.String("listen", "", "`address:port`; port 0: any, which is then printed")
	certificate := flags.String("certificate", "", "`file` with the certificate, as PEM")
	key := flags.String("key", "", "`file` with its key, as PEM")
	return func() error {
		config, err := transport.Config()
		if err != nil {
			return err
		}
		pair, err := tls.LoadX509KeyPair(*certificate, *key)
		if err != nil {
			return err
		}
		ctx := endpoint.Termination()
		socket, err := endpoint.Listen(*listen)
		if err != nil {
			return err
		}
		return web.Serve(ctx, socket, pair, config)
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
		limit := time.Duration(*timeout * 1e9)
		result, err := web.Fetch(*connect, config, *bytes, limit)
		if wrote := output.JSON(result, *file); wrote != nil {
			return wrote
		}
		return err
	}
}
