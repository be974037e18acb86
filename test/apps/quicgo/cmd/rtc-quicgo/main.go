// SPDX-License-Identifier: GPL-2.0-or-later

// The command rtc-quicgo sends real-time video over QUIC with quic-go, one stream a
// frame.
package main

import (
	"flag"

	"quicgo/internal/cli"
	"quicgo/internal/endpoint"
	"quicgo/internal/output"
	"quicgo/internal/video"
)

func main() {
	cli.Main("rtc-quicgo", map[string]cli.Role{"server": server, "client": client})
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
		return endpoint.Serve(ctx, socket, config, video.Handle)
	}
}

func client(flags *flag.FlagSet) func() error {
	var transport endpoint.Transport
	transport.Register(flags)
	connect := flags.String("connect", "", "the server's `address:port`")
	seconds := flags.Float64("seconds", 20, "how long frames are generated")
	fps := flags.Uint("fps", 30, "frames a second")
	kbps := flags.Uint("kbps", 3000, "rate of the video in kbit/s")
	file := flags.String("json", "", "also write the result to this `file`")
	return func() error {
		request, err := video.NewRequest(*seconds, *fps, *kbps)
		if err != nil {
			return cli.Usagef("%w", err)
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
		result, err := video.Run(client, config, request)
		if wrote := output.JSON(result, *file); wrote != nil {
			return wrote
		}
		return err
	}
}
