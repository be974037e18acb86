// SPDX-License-Identifier: GPL-2.0-or-later

// Package cli has the parts of a command line that all programs share.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// A Role registers its options and returns what to run once they are set.
type Role func(flags *flag.FlagSet) (run func() error)

type usageError struct{ error }

// Usagef is an error of whoever called the program.
func Usagef(format string, values ...any) error {
	return usageError{fmt.Errorf(format, values...)}
}

// Main runs the role that the first argument names. It ends the process: with exit
// code 2 if the command line makes no sense, with 1 if something else went wrong.
func Main(program string, roles map[string]Role) {
	err := run(program, roles, os.Args[1:])
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "error: %v\n", err)
	if errors.As(err, &usageError{}) {
		os.Exit(2)
	}
	os.Exit(1)
}

func run(program string, roles map[string]Role, arguments []string) error {
	var names []string
	for name := range roles {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(arguments) == 0 || roles[arguments[0]] == nil {
		return Usagef("%s wants to be told %s", program, strings.Join(names, " or "))
	}
	flags := flag.NewFlagSet(program+" "+arguments[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	run := roles[arguments[0]](flags)
	switch err := flags.Parse(arguments[1:]); {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(os.Stdout)
		flags.Usage()
		return nil
	case err != nil:
		return usageError{err}
	case flags.NArg() > 0:
		return Usagef("unexpected argument %q", flags.Arg(0))
	}
	return run()
}
