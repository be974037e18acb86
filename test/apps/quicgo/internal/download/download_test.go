// SPDX-License-Identifier: GPL-2.0-or-later

package download

import (
	"context"
	"net"
	"testing"
	"time"

	"quicgo/internal/endpoint"
)

func TestDownloadOverLoopback(t *testing.T) {
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv6loopback})
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
	result, err := Run(client, nil, 3_000_000, time.Minute)
	if err != nil || !result.Complete || result.Bytes != 3_000_000 || *result.FctS < *result.HandshakeS {
		t.Errorf("%+v %v", result, err)
	}
	end()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestServerThatIsNotThereIsAnErrorWithAResult(t *testing.T) {
	gone, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	client, err := endpoint.NewClient(gone.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	result, err := Run(client, nil, 1000, 200*time.Millisecond)
	if err == nil || err.Error() != "not complete after 0.2 s" || result.Complete || result.FctS != nil {
		t.Errorf("%+v %v", result, err)
	}
}
