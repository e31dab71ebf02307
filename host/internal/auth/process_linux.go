package auth

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// TCPProcess returns the process that opened a TCP connection on this machine. Since a process
// may pass a socket on to its children, that is the oldest process that has it. The error is
// never [ErrNeverTold].
func TCPProcess(conn net.Conn) (Process, error) {
	found, err := otherEnd(conn)
	if err != nil {
		return Process{}, err
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return Process{}, fmt.Errorf("look for the process: %w", err)
	}
	var oldest Process
	for _, entry := range processes {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || !belongsTo(pid, found.uid) || !hasSocket(pid, found.inode) {
			continue
		}
		// If the process has ended since, startOf fails or returns the start of a process that
		// does not have the socket.
		started, err := startOf(pid)
		if err == nil && hasSocket(pid, found.inode) && (oldest.PID == 0 || earlier(started, oldest.Started)) {
			oldest = Process{pid, started}
		}
	}
	if oldest.PID == 0 {
		return Process{}, errors.New("no process that can be seen has opened the connection")
	}
	return oldest, nil
}

// Lives reports whether the process still runs.
func (p Process) Lives() bool {
	started, err := startOf(p.PID)
	return err == nil && started == p.Started
}

// belongsTo reports whether a process runs under an account. A process that opened its
// connections under another account does not match.
func belongsTo(pid, uid int) bool {
	info, err := os.Stat("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == uid
}

// hasSocket reports whether a process has the socket with an inode open.
func hasSocket(pid int, inode string) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	files, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, file := range files {
		if target, err := os.Readlink(filepath.Join(dir, file.Name())); err == nil && target == "socket:["+inode+"]" {
			return true
		}
	}
	return false
}

// startOf returns the start time of a process, in clock ticks since the system booted.
func startOf(pid int) (string, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", err
	}
	return startIn(stat)
}

// startIn reads the start time from a text like /proc/PID/stat. A process that has ended but
// was not reaped has none.
func startIn(stat []byte) (string, error) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the first is the state
	if len(fields) < 20 {
		return "", errors.New("the start of the process cannot be read")
	}
	if state := string(fields[0]); state == "Z" || state == "X" {
		return "", errors.New("the process has ended")
	}
	return string(fields[19]), nil
}

// earlier compares two numbers of ticks.
func earlier(a, b string) bool {
	return len(a) < len(b) || len(a) == len(b) && a < b
}
