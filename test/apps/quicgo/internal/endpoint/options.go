// SPDX-License-Identifier: GPL-2.0-or-later

// Package endpoint has what the programs share on quic-go: options, sockets, and the
// loop of a server.
package endpoint

import (
	"flag"
	"os"
	"time"

	"github.com/quic-go/quic-go"

	"quicgo/internal/cli"
)

// Transport has the options of servers and clients.
type Transport struct {
	cc  string
	gso bool
	mtu int
	rt  int
}

// Register makes them options of a program.
func (t *Transport) Register(flags *flag.FlagSet) {
	flags.StringVar(&t.cc, "cc", "newreno", "congestion controller: quic-go has only newreno")
	flags.BoolVar(&t.gso, "gso", false, "use UDP segmentation offload, so that links see bursts in large frames")
	flags.IntVar(&t.mtu, "mtu", 0, "fix the largest UDP payload in `bytes` instead of discovering it")
	flags.IntVar(&t.rt, "rt", 0, "SCHED_FIFO `priority` of other stacks' programs, here the lowest nice value; 0: none")
}

// As long as that of the other stacks, IDLE of ../../../src/lib.rs, which says why.
const idle = 120 * time.Second

// Config is quic-go's; what is not set here has quic-go's default. It also does what
// concerns the whole process, so it comes before everything else.
func (t *Transport) Config() (*quic.Config, error) {
	if t.cc != "newreno" {
		return nil, cli.Usagef("--cc %s: quic-go has only newreno", t.cc)
	}
	if t.mtu != 0 && (t.mtu < 1200 || t.mtu > 65_527) {
		return nil, cli.Usagef("--mtu %d: wanted 1200 to 65527", t.mtu)
	}
	if t.rt < 0 || t.rt > 99 {
		return nil, cli.Usagef("--rt %d: wanted 0 to 99", t.rt)
	}
	if err := becomePrompt(t.rt); err != nil {
		return nil, err
	}
	if !t.gso {
		os.Setenv("QUIC_GO_DISABLE_GSO", "true")
	}
	// No link here marks packets, so there is nothing to be had from asking for it.
	os.Setenv("QUIC_GO_DISABLE_ECN", "true")
	return &quic.Config{
		MaxIdleTimeout:          idle,
		InitialPacketSize:       uint16(t.mtu),
		DisablePathMTUDiscovery: t.mtu != 0,
	}, nil
}
