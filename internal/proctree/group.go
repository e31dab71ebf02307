package proctree

import "golang.org/x/sys/unix"

// KillGroup kills the process group that pid leads, and pid itself. The caller
// knows that pid is the process that it means, one that it has not yet reaped.
func KillGroup(pid int) {
	if pid <= 1 {
		return // 0, -1 and process 1 stand for other processes than a program
	}
	// They fail if there is nothing to kill.
	_ = unix.Kill(-pid, unix.SIGKILL)
	_ = unix.Kill(pid, unix.SIGKILL)
}
