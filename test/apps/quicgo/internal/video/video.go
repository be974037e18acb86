// SPDX-License-Identifier: GPL-2.0-or-later

package video

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/sys/unix"

	"quicgo/internal/endpoint"
)

// The urgency that quic-go gives to every stream.
const urgency = 3

func monotonicNs() uint64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // the clock exists on every Linux
	}
	return uint64(now.Nano())
}

// The runtime's own timers are up to a millisecond late.
func sleepUntil(ns uint64) error {
	until := unix.NsecToTimespec(int64(ns))
	for {
		err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &until, nil)
		if err != unix.EINTR {
			return err
		}
	}
}

// Handle serves one connection.
func Handle(ctx context.Context, connection *quic.Conn) error {
	stream, err := connection.AcceptStream(ctx)
	if err != nil {
		return err
	}
	var asked [requestBytes]byte
	if _, err := io.ReadFull(stream, asked[:]); err != nil {
		return err
	}
	request, err := decode(asked)
	if err != nil {
		return err
	}
	if err := send(connection, request); err != nil {
		return err
	}
	// The client goes when it has all frames or has waited long enough.
	<-connection.Context().Done()
	return context.Cause(connection.Context())
}

func send(connection *quic.Conn, request Request) error {
	start := monotonicNs()
	for number := range request.Frames {
		generated := start + uint64(request.offset(number))
		if err := sleepUntil(generated); err != nil {
			return err
		}
		stream, err := connection.OpenUniStreamSync(connection.Context())
		if err != nil {
			return err
		}
		// Older frames first: their viewer is waiting for them. By default quic-go
		// shares the link between all frames under way.
		stream.SetPriority(urgency, false)
		// A frame that must wait for room must not delay the next one's generation.
		go sendFrame(connection, stream, number, request.frame(number, generated))
	}
	return nil
}

func sendFrame(connection *quic.Conn, stream *quic.SendStream, number uint32, data []byte) {
	_, err := stream.Write(data)
	if err == nil {
		err = stream.Close()
	}
	if err != nil && connection.Context().Err() == nil {
		fmt.Fprintf(os.Stderr, "frame %d: %v\n", number, err)
	}
}

// Run receives one video. The result says what came also where there is an error.
func Run(client *endpoint.Client, config *quic.Config, request Request) (Result, error) {
	// With fewer, frames would wait for the end of others: that would measure this
	// limit and not the transport.
	limited := config.Clone()
	limited.MaxIncomingUniStreams = int64(request.Frames)
	arrivals := newArrivals(request)
	err := receive(client, limited, request, arrivals)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
		if arrivals.missing == len(arrivals.delays) {
			err = fmt.Errorf("nothing arrived in %v s", request.limit().Seconds())
		}
	}
	return arrivals.result(), err
}

type frame struct {
	data  []byte
	nowNs uint64
	err   error
}

func receive(client *endpoint.Client, config *quic.Config, request Request, arrivals *arrivals) error {
	end := time.Now().Add(request.limit())
	ctx, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	connection, err := client.Connect(ctx, config)
	if err != nil {
		return err
	}
	defer connection.CloseWithError(0, "done")
	stream, err := connection.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	if _, err := stream.Write(request.encode()); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	// Room for all, so that nobody waits for a reader that has gone.
	frames := make(chan frame, request.Frames+1)
	go func() {
		for {
			stream, err := connection.AcceptUniStream(ctx)
			if err != nil {
				frames <- frame{err: err}
				return
			}
			go func() {
				data, err := io.ReadAll(io.LimitReader(stream, int64(request.FrameBytes)+1))
				frames <- frame{data, monotonicNs(), err}
			}()
		}
	}()
	for arrivals.missing > 0 {
		select {
		case frame := <-frames:
			if frame.err != nil {
				return frame.err
			}
			if err := arrivals.take(frame.data, frame.nowNs); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
