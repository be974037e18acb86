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
