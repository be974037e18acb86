package endpoint

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// becomeRealTime gives every thread of the process SCHED_FIFO of this priority. The
// runtime has started threads by now, so the program starts anew with what this
// thread is given.
func becomeRealTime(priority int) error {
	if priority == 0 {
		return nil
	}
	// The process is a new one unless its first thread has what is wanted.
	now, err := unix.SchedGetAttr(os.Getpid(), 0)
	if err != nil {
		return fmt.Errorf("SCHED_FIFO %d: %w", priority, err)
	}
	if now.Policy == unix.SCHED_FIFO && now.Priority == uint32(priority) {
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	wanted := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: uint32(priority)}
	if err := unix.SchedSetAttr(0, &wanted, 0); err != nil {
		return fmt.Errorf("SCHED_FIFO %d: %w", priority, err)
	}
	return syscall.Exec(program, os.Args, os.Environ())
}
