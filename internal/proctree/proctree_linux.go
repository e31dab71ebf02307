package proctree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// AdoptOrphans makes this process, while it lives, the parent of orphaned descendants, instead
// of process 1.
func AdoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set subreaper: %w", err)
	}
	if _, err := os.ReadFile("/proc/thread-self/children"); err != nil {
		return fmt.Errorf("list child processes (needs /proc and a kernel with CONFIG_PROC_CHILDREN): %w", err)
	}
	return nil
}

func isFirstThread() bool { return unix.Gettid() == os.Getpid() }

// KillBelow kills all descendants of a process, the lowest first. It misses processes that start
// meanwhile.
func KillBelow(pid int) {
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
	if stat, err := ReadStat(pid); err != nil || stat.Parent != parent {
		return
	}
	KillBelow(pid)
	// It fails if the process has just ended.
	_ = handle.Kill()
}

// KillOrphans kills and reaps the orphans of this process for which ours is true,
// and everything below them, until nothing is left or the timeout has passed. It
// returns how many died of SIGKILL, and how many still live. One call at a time:
// the caller sees to that.
func KillOrphans(timeout time.Duration, ours func(pid int, s Stat) bool) (killed, left int) {
	self := os.Getpid()
	deadline := time.Now().Add(timeout)
	for {
		found := orphans(ours)
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

// orphans lists the children of this process that it did not start itself, and
// those that it started on its first thread.
func orphans(ours func(pid int, s Stat) bool) []int {
	self := os.Getpid()
	var found []int
	for _, pid := range ChildrenOfThread(self, self) {
		stat, err := ReadStat(pid)
		if err == nil && stat.Parent == self && ours(pid, stat) {
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
			found = append(found, ChildrenOfThread(pid, tid)...)
		}
	}
	return found
}

// ChildrenOfThread lists the child processes that a thread of a process has
// started or adopted.
func ChildrenOfThread(pid, tid int) []int {
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

// Stat holds the fields of /proc/PID/stat that are needed.
type Stat struct {
	Parent  int
	Session int    // it leaves one for a new one only
	Started uint64 // clock ticks since boot
}

// ReadStat reads the state of a process.
func ReadStat(pid int) (Stat, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Stat{}, err
	}
	// The second field is the program's name in parentheses, which may contain spaces and
	// parentheses; state, parent and so on follow it.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return Stat{}, fmt.Errorf("read /proc/%d/stat: it has only %d fields", pid, len(fields))
	}
	parent, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return Stat{}, err
	}
	session, err := strconv.Atoi(string(fields[3]))
	if err != nil {
		return Stat{}, err
	}
	started, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return Stat{}, err
	}
	return Stat{Parent: parent, Session: session, Started: started}, nil
}

// StartTime returns when a process was started, 0 if it is gone.
func StartTime(pid int) uint64 {
	stat, err := ReadStat(pid)
	if err != nil {
		return 0
	}
	return stat.Started
}
