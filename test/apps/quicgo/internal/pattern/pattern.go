// Package pattern is the content by which corruption, truncation and misplaced data
// are found: the same as that of the Rust programs.
package pattern

import "bytes"

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
