// SPDX-License-Identifier: GPL-2.0-or-later

// Package download asks for a number of bytes and measures how long they take. It
// speaks as the Rust goodput does: the client asks on a bidirectional stream with the
// number as a big-endian 64-bit integer; the server answers with as many bytes of the
// pattern.
package download

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/quic-go/quic-go"

	"quicgo/internal/endpoint"
	"quicgo/internal/output"
	"quicgo/internal/pattern"
)

// Handle serves one connection.
func Handle(ctx context.Context, connection *quic.Conn) error {
	for {
		stream, err := connection.AcceptStream(ctx)
		if err != nil {
			return err
		}
		var request [8]byte
		if _, err := io.ReadFull(stream, request[:]); err != nil {
			return err
		}
		if err := answer(stream, binary.BigEndian.Uint64(request[:])); err != nil {
			return err
		}
	}
}

func answer(stream io.WriteCloser, count uint64) error {
	if err := pattern.Send(stream, count); err != nil {
		return err
	}
	return stream.Close()
}

// Result is what a client prints.
type Result struct {
	App         string   `json:"app"`
	Stack       string   `json:"stack"`
	Bytes       uint64   `json:"bytes"`
	FctS        *float64 `json:"fct_s"`
	HandshakeS  *float64 `json:"handshake_s"`
	GoodputMbps float64  `json:"goodput_mbps"`
	Complete    bool     `json:"complete"`
}

// Run downloads once. The result says how far it came also where there is an error.
func Run(client *endpoint.Client, config *quic.Config, bytes uint64, limit time.Duration) (Result, error) {
	result := Result{App: "goodput", Stack: "quicgo"}
	start := time.Now()
	err := result.fetch(client, config, bytes, start, limit)
	elapsed := time.Since(start).Seconds()
	result.GoodputMbps = output.Rounded(float64(result.Bytes) * 8e-6 / elapsed)
	if err == nil {
		fct := output.Rounded(elapsed)
		result.FctS, result.Complete = &fct, true
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("not complete after %v s", limit.Seconds())
	}
	return result, err
}

func (r *Result) fetch(client *endpoint.Client, config *quic.Config, bytes uint64, start time.Time, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	connection, err := client.Connect(ctx, config)
	if err != nil {
		return err
	}
	defer connection.CloseWithError(0, "done")
	handshake := output.Rounded(time.Since(start).Seconds())
	r.HandshakeS = &handshake
	stream, err := connection.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	if err := stream.SetDeadline(start.Add(limit)); err != nil {
		return err
	}
	if _, err := stream.Write(binary.BigEndian.AppendUint64(nil, bytes)); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	return pattern.Receive(stream, bytes, &r.Bytes)
}
