// SPDX-License-Identifier: GPL-2.0-or-later

package pattern

import (
	"bytes"
	"slices"
	"testing"
)

func TestIsTheContentOfTheOtherPrograms(t *testing.T) {
	// The first values of the generator, worked out elsewhere.
	if want := []byte{60, 94, 129, 180, 12, 94, 198, 142}; !bytes.Equal(Piece(0)[:8], want) {
		t.Fatal(Piece(0)[:8])
	}
}

func TestFindsShiftsAndFlips(t *testing.T) {
	data := slices.Concat(Piece(Period-100), Piece(0)[:50])
	if !Matches(Period-100, data) || !Matches(5*Period-100, data) {
		t.Error("does not match itself")
	}
	if Matches(Period-99, data) {
		t.Error("a shift is not found")
	}
	data[149] ^= 1
	if Matches(Period-100, data) {
		t.Error("a flip is not found")
	}
}

func TestWhatIsSentIsWhatIsReceived(t *testing.T) {
	for _, count := range []uint64{0, 1, Period, 200_000} {
		var sent bytes.Buffer
		if err := Send(&sent, count); err != nil {
			t.Fatal(err)
		}
		data := slices.Clone(sent.Bytes())
		var received uint64
		if err := Receive(&sent, count, &received); err != nil || received != count {
			t.Errorf("%d bytes: %v after %d", count, err, received)
		}
		if count == 0 {
			continue
		}
		received = 0
		if err := Receive(bytes.NewReader(data[:count-1]), count, &received); err == nil || received != count-1 {
			t.Errorf("a missing byte: %v after %d", err, received)
		}
		data[count-1] ^= 1
		received = 0
		if err := Receive(bytes.NewReader(data), count, &received); err == nil {
			t.Error("a flipped bit is not noticed")
		}
	}
}
