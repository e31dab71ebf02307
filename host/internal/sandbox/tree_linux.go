package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// sweepTimeout bounds the killing of what a program left behind.
const sweepTimeout = 10 * time.Second

// adoptOrphans makes this process the parent of what its programs leave
// behind, instead of process 1.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set subreaper: %w", err)
	}
	if _, err := os.ReadFile("/proc/thread-self/children"); err != nil {
		return fmt.Errorf("list child processes (needs /proc and a kernel with CONFIG_PROC_CHILDREN): %w", err)
	}
	return nil
}

func isFirstThread() bool { return unix.Gettid() == os.Getpid() }

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
	killGroup(p.pid)
	// It cannot fail for a child that nobody else reaps.
	p.exit.State, _ = p.program.Wait()
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

// killBelow kills all descendants of a process, the lowest first. It misses
// those that are started meanwhile.
func killBelow(pid int) {
	for _, child := range children(pid) {
		killChild(pid, child)
	}
}

// killChild kills a child of parent, and everything below it first.
func killChild(parent, pid int) {
	if pid <= 1 {
		return
	}
	// The handle holds on to this very process: if it is still a child of
	// parent now, then it is not a later one with the same pid.
	handle, err := os.FindProcess(pid)
	if err != nil {
		return
	}
	defer func() { _ = handle.Release() }() // it cannot fail
	if stat, err := readStat(pid); err != nil || stat.parent != parent {
		return
	}
	killBelow(pid)
	// It fails if the process has just ended.
	_ = handle.Kill()
}

// killOrphans kills and reaps everything that programs which are gone have
// left to this process, until nothing is left or sweepTimeout has passed. It
// returns how many died of SIGKILL, and how many still live.
func killOrphans(since uint64) (killed, left int) {
	self := os.Getpid()
	deadline := time.Now().Add(sweepTimeout)
	for {
		found := orphans(since)
		if len(found) == 0 || time.Now().After(deadline) {
			return killed, len(found)
		}
		for _, pid := range found {
			killChild(self, pid)
			if reapOrphan(pid, deadline) {
				killed++
			}
		}
	}
}

// orphans lists the children of this process that it did not start itself.
// The kernel gives orphans to the first thread of the process that adopts
// them, and launchers never fork on that one. Other children that it may have
// were not started under no_new_privs, or earlier.
func orphans(since uint64) []int {
	self := os.Getpid()
	var found []int
	for _, pid := range childrenOfThread(self, self) {
		stat, err := readStat(pid)
		if err == nil && stat.parent == self && stat.started >= since && hasNoNewPrivs(pid) {
			found = append(found, pid)
		}
	}
	return found
}

// reapOrphan waits for the end of an orphan, takes its exit status and says
// whether it died of SIGKILL.
func reapOrphan(pid int, deadline time.Time) bool {
	awaitEnd(pid, deadline)
	// If it has not ended, it stays an orphan and is found again.
	var status unix.WaitStatus
	reaped, err := unix.Wait4(pid, &status, unix.WNOHANG, nil)
	return err == nil && reaped == pid && status.Signaled() && status.Signal() == unix.SIGKILL
}

// awaitEnd returns when a process has ended, at the deadline, or at once if
// there is no descriptor left to wait with.
func awaitEnd(pid int, deadline time.Time) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }() // nothing is buffered
	for {
		timeout := max(0, time.Until(deadline))
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, int(timeout.Milliseconds())); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// children lists the child processes of all threads of a process.
func children(pid int) []int {
	threads, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return nil // it is gone
	}
	var found []int
	for _, thread := range threads {
		if tid, err := strconv.Atoi(thread.Name()); err == nil {
			found = append(found, childrenOfThread(pid, tid)...)
		}
	}
	return found
}

func childrenOfThread(pid, tid int) []int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, tid))
	if err != nil {
		return nil // it is gone
	}
	var found []int
	for field := range bytes.FieldsSeq(text) {
		if child, err := strconv.Atoi(string(field)); err == nil {
			found = append(found, child)
		}
	}
	return found
}

// procStat is what is needed of /proc/PID/stat.
type procStat struct {
	parent  int
	started uint64 // clock ticks since boot
}

func readStat(pid int) (procStat, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, err
	}
	// The second field is the program's name in parentheses, which may hold
	// spaces and parentheses; state, parent and so on follow it.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return procStat{}, fmt.Errorf("read /proc/%d/stat: it has only %d fields", pid, len(fields))
	}
	parent, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return procStat{}, err
	}
	started, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return procStat{}, err
	}
	return procStat{parent: parent, started: started}, nil
}

// startTime returns when a process was started, 0 if it is gone.
func startTime(pid int) uint64 {
	stat, err := readStat(pid)
	if err != nil {
		return 0
	}
	return stat.started
}

func hasNoNewPrivs(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && bytes.Contains(text, []byte("\nNoNewPrivs:\t1\n"))
}
