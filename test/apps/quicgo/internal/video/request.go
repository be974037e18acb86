// SPDX-License-Identifier: GPL-2.0-or-later

// Package video sends frames in real time and measures how late each is. It speaks as
// the Rust rtc does: the client asks on a bidirectional stream for a number of frames,
// frames a second and bytes a frame (three big-endian 32-bit integers). The server
// generates them on a fixed schedule and sends each on a unidirectional stream of its
// own: frame number (32 bits), the time it was due to be generated (64 bits,
// CLOCK_MONOTONIC in ns, so that both must run on one machine), and the pattern.
package video

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"quicgo/internal/pattern"
)

const (
	requestBytes = 12
	// Frame number and time.
	headerBytes   = 12
	maxFrameBytes = 16 << 20
	maxFrames     = 1_000_000
	// How long after the last frame was generated frames may still arrive.
	grace = 30 * time.Second
)

// Request is what a client asks for.
type Request struct {
	Frames, FPS, FrameBytes uint32
}

// NewRequest is the one for a video of this length and rate.
func NewRequest(seconds float64, fps, kbps uint) (Request, error) {
	if fps == 0 {
		return Request{}, fmt.Errorf("--fps must be at least 1")
	}
	frames := math.Round(seconds * float64(fps))
	bytes := kbps * 1000 / 8 / fps
	if !(frames <= maxFrames) || fps > math.MaxUint32 || bytes > math.MaxUint32 {
		return Request{}, fmt.Errorf("%g frames of %d bytes are too much", frames, bytes)
	}
	request := Request{uint32(max(frames, 0)), uint32(fps), uint32(bytes)}
	return request, request.check()
}

// Also the server's check of what a client may ask for.
func (r Request) check() error {
	if r.Frames < 1 || r.Frames > maxFrames || r.FPS < 1 || r.FPS > 10_000 {
		return fmt.Errorf("%d frames at %d a second: wanted 1 to %d at 1 to 10000", r.Frames, r.FPS, maxFrames)
	}
	if r.FrameBytes < headerBytes || r.FrameBytes > maxFrameBytes {
		return fmt.Errorf("frames of %d bytes: wanted %d to %d", r.FrameBytes, headerBytes, maxFrameBytes)
	}
	return nil
}

func (r Request) encode() []byte {
	bytes := make([]byte, 0, requestBytes)
	for _, field := range []uint32{r.Frames, r.FPS, r.FrameBytes} {
		bytes = binary.BigEndian.AppendUint32(bytes, field)
	}
	return bytes
}

func decode(bytes [requestBytes]byte) (Request, error) {
	field := func(at int) uint32 { return binary.BigEndian.Uint32(bytes[at:]) }
	request := Request{field(0), field(4), field(8)}
	return request, request.check()
}

// When a frame is generated, after the start.
func (r Request) offset(frame uint32) time.Duration {
	return time.Duration(uint64(frame) * uint64(time.Second) / uint64(r.FPS))
}

// How long frames are worth waiting for, after the start.
func (r Request) limit() time.Duration {
	return r.offset(r.Frames) + grace
}

// A frame as it is sent.
func (r Request) frame(number uint32, generatedNs uint64) []byte {
	data := make([]byte, 0, r.FrameBytes)
	data = binary.BigEndian.AppendUint32(data, number)
	data = binary.BigEndian.AppendUint64(data, generatedNs)
	for len(data) < int(r.FrameBytes) {
		piece := pattern.Piece(uint64(len(data)))
		data = append(data, piece[:min(len(piece), int(r.FrameBytes)-len(data))]...)
	}
	return data
}
