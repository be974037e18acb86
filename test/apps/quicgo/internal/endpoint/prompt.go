// SPDX-License-Identifier: GPL-2.0-or-later

package endpoint

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// The lowest nice value, and what getpriority(2) returns for it.
const (
	nicest        = -20
	nicestReturns = 20 - nicest
)

// becomePrompt gives every thread of the process the lowest nice value. The other
// stacks' programs have SCHED_FIFO; under that, quic-go's loop once kept a CPU for half a
// minute, with what it waited for in a kernel thread behind it and the programs of a
// second experiment beside it. The runtime has started threads by now, so the program
// starts anew with what this thread is given.
func becomePrompt(priority int) error {
	if priority == 0 {
		return nil
	}
	// The process is a new one unless its first thread has what is wanted.
	now, err := unix.Getpriority(unix.PRIO_PROCESS, os.Getpid())
	if err != nil {
		return fmt.Errorf("nice value: %w", err)
	}
	if now == nicestReturns {
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, nicest); err != nil {
		return fmt.Errorf("nice value %d: %w", nicest, err)
	}
	return syscall.Exec(program, os.Args, os.Environ())
}
