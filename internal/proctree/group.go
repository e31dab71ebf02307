package proctree

import "golang.org/x/sys/unix"

// KillGroup kills the process group that pid leads, and pid itself. The caller must know that
// pid is still its process: one that has not been reaped yet.
func KillGroup(pid int) {
	if pid <= 1 {
		return // 0, -1 and 1 do not name a program's process
	}
	// They fail if there is nothing to kill.
	_ = unix.Kill(-pid, unix.SIGKILL)
	_ = unix.Kill(pid, unix.SIGKILL)
}
