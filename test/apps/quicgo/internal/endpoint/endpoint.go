// SPDX-License-Identifier: GPL-2.0-or-later

package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/quic-go/quic-go"

	"quicgo/internal/output"
)

// Listen binds a server's socket and prints the address as one JSON object.
func Listen(address string) (*net.UDPConn, error) {
	local, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, err
	}
	socket, err := net.ListenUDP("udp", local)
	if err != nil {
		return nil, err
	}
	return socket, output.JSON(map[string]string{"listening": socket.LocalAddr().String()}, "")
}

// Termination ends with SIGTERM or SIGINT.
func Termination() context.Context {
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	return ctx
}

// Serve serves connections on the socket until the context ends.
func Serve(ctx context.Context, socket net.PacketConn, config *quic.Config, handle func(context.Context, *quic.Conn) error) error {
	certificate, err := Certificate()
	if err != nil {
		return err
	}
	transport := &quic.Transport{Conn: socket}
	defer transport.Close()
	var sent losses
	traced := &quic.Config{}
	if config != nil {
		traced = config.Clone()
	}
	traced.Tracer = sent.trace
	tls := &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{alpn}}
	listener, err := transport.Listen(tls, traced)
	if err != nil {
		return err
	}
	var handlers sync.WaitGroup
	defer handlers.Wait()
	for {
		connection, err := listener.Accept(ctx)
		if ctx.Err() != nil {
			handlers.Wait()
			return sent.print()
		}
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, func() { connection.CloseWithError(0, "the server ends") })
		handlers.Go(func() {
			defer stop()
			err := handle(ctx, connection)
			sent.packets.Add(connection.ConnectionStats().PacketsSent)
			var closed *quic.ApplicationError
			if err == nil || errors.As(err, &closed) && closed.ErrorCode == 0 {
				return
			}
			fmt.Fprintf(os.Stderr, "%v: %v\n", connection.RemoteAddr(), err)
			connection.CloseWithError(1, err.Error())
		})
	}
}

// Client is a socket to connect from.
type Client struct {
	transport *quic.Transport
	server    *net.UDPAddr
}

// NewClient binds one that can reach the server.
func NewClient(server string) (*Client, error) {
	address, err := net.ResolveUDPAddr("udp", server)
	if err != nil {
		return nil, err
	}
	socket, err := net.ListenUDP("udp", nil)
	if err != nil {
		return nil, err
	}
	return &Client{transport: &quic.Transport{Conn: socket}, server: address}, nil
}

// Connect returns when the handshake is done.
func (c *Client) Connect(ctx context.Context, config *quic.Config) (*quic.Conn, error) {
	connection, err := c.transport.Dial(ctx, c.server, ClientTLS(), config)
	if err != nil {
		return nil, fmt.Errorf("handshake: %w", err)
	}
	return connection, nil
}

// Close takes the socket away, after what is on the way out.
func (c *Client) Close() {
	c.transport.Close()
}
