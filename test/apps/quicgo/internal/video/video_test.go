// SPDX-License-Identifier: GPL-2.0-or-later

package video

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"quicgo/internal/endpoint"
)

func TestFramesHaveTheSizeOfTheRate(t *testing.T) {
	request, err := NewRequest(20, 30, 3000)
	if err != nil || request != (Request{600, 30, 12_500}) {
		t.Fatal(request, err)
	}
	if again, err := decode([requestBytes]byte(request.encode())); err != nil || again != request {
		t.Error(again, err)
	}
	for _, shape := range []struct {
		seconds   float64
		fps, kbps uint
	}{{20, 0, 3000}, {0, 30, 3000}, {-1, 30, 3000}, {1, 1000, 1}, {1e12, 30, 3000}} {
		if _, err := NewRequest(shape.seconds, shape.fps, shape.kbps); err == nil {
			t.Errorf("%+v passed", shape)
		}
	}
}

func TestTheScheduleDoesNotDrift(t *testing.T) {
	request := Request{30_000, 30, 12_500}
	if request.offset(30_000) != 1000*time.Second || request.offset(1) != 33_333_333 {
		t.Error(request.offset(30_000), request.offset(1))
	}
}

func TestAFrameIsTakenOnceAndOnlyWhole(t *testing.T) {
	request := Request{4, 30, 12_500}
	arrivals := newArrivals(request)
	frame := request.frame(1, 5_000_000)
	flipped := request.frame(1, 5_000_000)
	flipped[len(flipped)-1] ^= 1
	for _, wrong := range [][]byte{frame[:len(frame)-1], flipped, request.frame(4, 0)} {
		if arrivals.take(wrong, 9_000_000) == nil {
			t.Error("taken")
		}
	}
	if err := arrivals.take(frame, 9_000_900); err != nil {
		t.Fatal(err)
	}
	if arrivals.take(frame, 9_000_900) == nil {
		t.Error("taken twice")
	}
	if err := arrivals.take(request.frame(3, 0), 6_500_000); err != nil {
		t.Fatal(err)
	}
	result := arrivals.result()
	if result.Frames != 4 || result.FramesLost != 2 || result.DelaysMs[0] != nil {
		t.Errorf("%+v", result)
	}
	// Frame 0 was waited for to the end: 4 / 30 s and 30 s.
	if *result.DelaysMs[1] != 4 || *result.FrameDelayMs.P50 != 6.5 || *result.FrameDelayMs.Max != 30_133.333333 {
		t.Errorf("%+v", result)
	}
	if *result.FrameJitterMs.Mean != 2.5 {
		t.Errorf("%+v", result)
	}
}

func TestVideoOverLoopback(t *testing.T) {
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- endpoint.Serve(ctx, socket, nil, Handle) }()
	client, err := endpoint.NewClient(socket.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	result, err := Run(client, &quic.Config{}, Request{30, 60, 12_500})
	if err != nil || result.Frames != 30 || result.FramesLost != 0 || result.FrameJitterMs.P99 == nil {
		t.Errorf("%+v %v", result, err)
	}
	end()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
