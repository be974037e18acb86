// SPDX-License-Identifier: GPL-2.0-or-later

package video

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"quicgo/internal/output"
	"quicgo/internal/pattern"
)

// Result is what a client prints.
type Result struct {
	App           string         `json:"app"`
	Stack         string         `json:"stack"`
	Frames        int            `json:"frames"`
	FramesLost    int            `json:"frames_lost"`
	FrameBytes    uint32         `json:"frame_bytes"`
	FrameDelayMs  output.Summary `json:"frame_delay_ms"`
	FrameJitterMs output.Summary `json:"frame_jitter_ms"`
	DelaysMs      []*float64     `json:"delays_ms"`
}

// What has come of a video.
type arrivals struct {
	request Request
	delays  []*float64
	missing int
}

func newArrivals(request Request) *arrivals {
	return &arrivals{request, make([]*float64, request.Frames), int(request.Frames)}
}

// A frame is complete; the time is by CLOCK_MONOTONIC.
func (a *arrivals) take(data []byte, nowNs uint64) error {
	if len(data) != int(a.request.FrameBytes) || !pattern.Matches(headerBytes, data[headerBytes:]) {
		return errors.New("a frame is corrupt")
	}
	number := binary.BigEndian.Uint32(data)
	generated := binary.BigEndian.Uint64(data[4:])
	if number >= uint32(len(a.delays)) || a.delays[number] != nil {
		return fmt.Errorf("frame %d came twice or was not asked for", number)
	}
	// In microseconds: the rest is noise.
	delay := float64((nowNs-min(generated, nowNs))/1000) / 1000
	a.delays[number] = &delay
	a.missing--
	return nil
}

func (a *arrivals) result() Result {
	var arrived, atLeast, jitter []float64
	for number, delay := range a.delays {
		if delay == nil {
			// It took at least as long as it was waited for: left out, a call that
			// broke down would look like a good one.
			waited := a.request.limit() - a.request.offset(uint32(number))
			atLeast = append(atLeast, output.Rounded(float64(waited)/1e6))
			continue
		}
		atLeast = append(atLeast, *delay)
		if len(arrived) > 0 {
			jitter = append(jitter, output.Rounded(math.Abs(*delay-arrived[len(arrived)-1])))
		}
		arrived = append(arrived, *delay)
	}
	return Result{
		App:           "rtc",
		Stack:         "quicgo",
		Frames:        len(a.delays),
		FramesLost:    a.missing,
		FrameBytes:    a.request.FrameBytes,
		FrameDelayMs:  output.Summarise(atLeast),
		FrameJitterMs: output.Summarise(jitter),
		DelaysMs:      a.delays,
	}
}
