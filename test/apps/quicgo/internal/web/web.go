// SPDX-License-Identifier: GPL-2.0-or-later

// Package web serves a number of bytes over HTTP/3 and downloads them.
package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"quicgo/internal/output"
	"quicgo/internal/pattern"
)

// Handler answers /bytes/N with N bytes of the pattern.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /bytes/{count}", func(answer http.ResponseWriter, request *http.Request) {
		count, err := strconv.ParseUint(request.PathValue("count"), 10, 64)
		if err != nil {
			http.Error(answer, "not a number of bytes", http.StatusBadRequest)
			return
		}
		header := answer.Header()
		header.Set("Content-Length", strconv.FormatUint(count, 10))
		header.Set("Content-Type", "application/octet-stream")
		header.Set("Cache-Control", "no-store")
		// A browser's script that is on no page of this server reads it and learns by
		// which protocol it came.
		header.Set("Access-Control-Allow-Origin", "*")
		header.Set("Timing-Allow-Origin", "*")
		// Fails if the client has gone, which is as well.
		_ = pattern.Send(answer, count)
	})
	return mux
}

// Serve serves until the context ends.
func Serve(ctx context.Context, socket net.PacketConn, certificate tls.Certificate, config *quic.Config) error {
	server := &http3.Server{
		Handler:    Handler(),
		QUICConfig: config,
		TLSConfig:  http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{certificate}}),
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(socket); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Result is what a client prints.
type Result struct {
	App         string   `json:"app"`
	Stack       string   `json:"stack"`
	Bytes       uint64   `json:"bytes"`
	Protocol    string   `json:"protocol"`
	FctS        *float64 `json:"fct_s"`
	HandshakeS  *float64 `json:"handshake_s"`
	GoodputMbps float64  `json:"goodput_mbps"`
	Complete    bool     `json:"complete"`
}

// Fetch downloads once, believing any certificate. The result says how far it came
// also where there is an error.
func Fetch(server string, config *quic.Config, bytes uint64, limit time.Duration) (Result, error) {
	result := Result{App: "http", Stack: "quicgo"}
	start := time.Now()
	err := result.fetch(server, config, bytes, start, limit)
	elapsed := time.Since(start).Seconds()
	result.GoodputMbps = output.Rounded(float64(result.Bytes) * 8e-6 / elapsed)
	if err == nil {
		fct := output.Rounded(elapsed)
		result.FctS, result.Complete = &fct, true
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("not complete after %v s", limit.Seconds())
	}
	return result, err
}

func (r *Result) fetch(server string, config *quic.Config, bytes uint64, start time.Time, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeDone: func(tls.ConnectionState, error) {
			handshake := output.Rounded(time.Since(start).Seconds())
			r.HandshakeS = &handshake
		},
	})
	transport := &http3.Transport{
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
		QUICConfig:         config,
		DisableCompression: true,
	}
	defer transport.Close()
	url := fmt.Sprintf("https://%s/bytes/%d", server, bytes)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	r.Protocol = answer.Proto
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the server says %s", answer.Status)
	}
	return pattern.Receive(answer.Body, bytes, &r.Bytes)
}
