package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/proctree"
)

// reap waits for the program's end, kills its process group and takes its
// exit status.
func (p *Process) reap() {
	for {
		err := unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	// The zombie still holds its pid, so the group is nobody else's.
	p.markEnded()
	proctree.KillGroup(p.pid)
	// It cannot fail for a child that nobody else reaps.
	p.exit.State, _ = p.program.Wait()
}

// killOrphans kills and reaps everything that programs which are gone have left
// to this process. Other children that it may have were not started under
// no_new_privs, or earlier.
func killOrphans(since uint64) (killed, left int) {
	return proctree.KillOrphans(sweepTimeout, func(pid int, s proctree.Stat) bool {
		return s.Started >= since && hasNoNewPrivs(pid)
	})
}

func hasNoNewPrivs(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && bytes.Contains(text, []byte("\nNoNewPrivs:\t1\n"))
}
