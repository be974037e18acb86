// SPDX-License-Identifier: GPL-2.0-or-later

// Package pattern is the content by which corruption, truncation and misplaced data
// are found: the same as that of the Rust programs.
package pattern

import (
	"bytes"
	"fmt"
	"io"
)

// Period is a prime, so that the content does not repeat with packets or pages.
const Period = 65_521

var content = func() (content [Period]byte) {
	state := uint32(1)
	for at := range content {
		// Numerical Recipes' generator; its upper bits are the better ones.
		state = state*1_664_525 + 1_013_904_223
		content[at] = byte(state >> 24)
	}
	return content
}()

// Piece is the longest piece of the content from an offset on that is contiguous.
func Piece(offset uint64) []byte {
	return content[offset%Period:]
}

// Matches tells whether data is the content at this offset.
func Matches(offset uint64, data []byte) bool {
	for len(data) > 0 {
		piece := Piece(offset)
		length := min(len(piece), len(data))
		if !bytes.Equal(data[:length], piece[:length]) {
			return false
		}
		offset += uint64(length)
		data = data[length:]
	}
	return true
}

// Send writes this many bytes of the content.
func Send(to io.Writer, count uint64) error {
	for offset := uint64(0); offset < count; {
		part := Piece(offset)
		part = part[:min(uint64(len(part)), count-offset)]
		if _, err := to.Write(part); err != nil {
			return err
		}
		offset += uint64(len(part))
	}
	return nil
}

// Receive reads to the end, which is to come after this many bytes of the content. It
// counts them also where there is an error.
func Receive(from io.Reader, count uint64, received *uint64) error {
	buffer := make([]byte, 64<<10)
	for {
		length, err := from.Read(buffer)
		if !Matches(*received, buffer[:length]) {
			return fmt.Errorf("the data is corrupt near byte %d", *received)
		}
		*received += uint64(length)
		switch {
		case err == io.EOF && *received != count:
			return fmt.Errorf("the data ends after %d of %d bytes", *received, count)
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}
