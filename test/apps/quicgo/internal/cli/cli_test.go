// SPDX-License-Identifier: GPL-2.0-or-later

package cli

import (
	"errors"
	"flag"
	"testing"
)

func TestOnlySensibleCommandLinesAreRun(t *testing.T) {
	var number int
	ran := errors.New("ran")
	roles := map[string]Role{"server": func(flags *flag.FlagSet) func() error {
		flags.IntVar(&number, "number", 0, "")
		return func() error { return ran }
	}}
	if err := run("x", roles, []string{"server", "--number", "7"}); err != ran || number != 7 {
		t.Fatal(err, number)
	}
	for _, line := range [][]string{nil, {"other"}, {"server", "--what"}, {"server", "--number", "x"}, {"server", "word"}} {
		if err := run("x", roles, line); !errors.As(err, &usageError{}) {
			t.Errorf("%v: %v", line, err)
		}
	}
}
