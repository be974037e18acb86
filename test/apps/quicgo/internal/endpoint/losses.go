// SPDX-License-Identifier: GPL-2.0-or-later

package endpoint

import (
	"context"
	"sync/atomic"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"

	"quicgo/internal/output"
)

// losses counts what a server's connections took for lost, and what of it was
// acknowledged after all. quic-go's own statistics tell only the difference.
type losses struct {
	packets, lost, spurious atomic.Uint64
}

// trace is a quic.Config's Tracer.
func (l *losses) trace(context.Context, bool, quic.ConnectionID) qlogwriter.Trace {
	return l
}

// AddProducer is qlogwriter.Trace's.
func (l *losses) AddProducer() qlogwriter.Recorder {
	return l
}

// RecordEvent is qlogwriter.Recorder's.
func (l *losses) RecordEvent(event qlogwriter.Event) {
	switch event := event.(type) {
	case qlog.PacketLost:
		if !event.IsMTUProbePacket {
			l.lost.Add(1)
		}
	case qlog.SpuriousLoss:
		l.spurious.Add(1)
	}
}

// Close is qlogwriter.Recorder's.
func (l *losses) Close() error {
	return nil
}

// print says it as the Rust programs do.
func (l *losses) print() error {
	sender := map[string]uint64{
		"packets":  l.packets.Load(),
		"lost":     l.lost.Load(),
		"spurious": l.spurious.Load(),
	}
	return output.JSON(map[string]any{"sender": sender}, "")
}
