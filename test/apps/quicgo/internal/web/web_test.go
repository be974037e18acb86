// SPDX-License-Identifier: GPL-2.0-or-later

package web

import (
	"context"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"quicgo/internal/endpoint"
)

func TestDownloadOverLoopback(t *testing.T) {
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := endpoint.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, socket, certificate, nil) }()
	result, err := Fetch(socket.LocalAddr().String(), nil, 1_000_000, time.Minute)
	if err != nil || !result.Complete || result.Bytes != 1_000_000 || result.Protocol != "HTTP/3.0" {
		t.Errorf("%+v %v", result, err)
	}
	if result.HandshakeS == nil || *result.HandshakeS > *result.FctS {
		t.Errorf("%+v", result)
	}
	end()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestAnythingButANumberIsRefused(t *testing.T) {
	for path, want := range map[string]int{"/bytes/-1": 400, "/bytes/x": 400, "/": 404, "/bytes/7": 200} {
		answer := httptest.NewRecorder()
		Handler().ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
		if answer.Code != want {
			t.Errorf("%s: %d", path, answer.Code)
		}
	}
}
