//go:build !linux

package sandbox

import "golang.org/x/sys/unix"

// This system cannot adopt orphans: a program is killed with its process
// group, and what left the group survives.

func adoptOrphans() error { return nil }

func isFirstThread() bool { return false }

// reap waits for the program's end and kills its process group.
func (p *Process) reap() {
	// It cannot fail for a child that nobody else reaps.
	p.exit.State, _ = p.program.Wait()
	p.markEnded()
	killGroup(p.pid)
}

// killGroup kills the process group that pid leads, and pid itself.
func killGroup(pid int) {
	if pid <= 1 {
		return // 0, -1 and process 1 stand for other processes than a program
	}
	// They fail if there is nothing to kill.
	_ = unix.Kill(-pid, unix.SIGKILL)
	_ = unix.Kill(pid, unix.SIGKILL)
}

func killBelow(int) {}

func killOrphans(uint64) (killed, left int) { return 0, 0 }

func startTime(int) uint64 { return 0 }
