package hosts

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// maxTable bounds how much is read of the kernel's table of locks.
	maxTable = 4 << 20
	// signByte is the byte of a file that shows which file of the table it is. A database locks
	// other bytes.
	signByte = 0x746f6f6c686f7374
)

// Of returns the other processes that are hosts of a configuration. It returns those that have
// marked the file that is at the path now, whatever path they know it by.
func Of(path string) []Host {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // nothing was written
	// How the table names a file depends on the file system. A lock of another kind shows it.
	if unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart, Start: signByte, Len: 1}) != nil {
		return nil
	}
	var found []Host
	for _, pid := range marking() {
		if h, ok := Process(pid); ok {
			found = append(found, h)
		}
	}
	// A host that has begun to stop meanwhile may have closed its state: it counts no more.
	still := marking()
	return slices.DeleteFunc(found, func(h Host) bool { return !slices.Contains(still, h.PID) })
}

// marking returns the processes with a mark on the file that this process has signed.
func marking() []int {
	table, err := os.Open("/proc/locks")
	if err != nil {
		return nil
	}
	defer func() { _ = table.Close() }() // nothing was written
	return sharing(io.LimitReader(table, maxTable), os.Getpid())
}

// sharing returns the processes that hold a shared lock (flock) on the file on which pid holds
// a read lock (fcntl) on signByte, except pid itself, from a table like /proc/locks; see proc(5).
func sharing(table io.Reader, pid int) (pids []int) {
	var holders [][2]string // process and file
	own := ""
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		// 1: FLOCK  ADVISORY  READ 3093 00:25:895780 0 EOF; a lock that waits has "->" before its kind
		columns := strings.Fields(lines.Text())
		if len(columns) < 7 || columns[3] != "READ" {
			continue
		}
		switch {
		case columns[1] == "POSIX" && columns[4] == strconv.Itoa(pid) && columns[6] == strconv.Itoa(signByte):
			own = columns[5]
		case columns[1] == "FLOCK" && columns[4] != strconv.Itoa(pid):
			holders = append(holders, [2]string{columns[4], columns[5]})
		}
	}
	for _, h := range holders {
		if id, err := strconv.Atoi(h[0]); h[1] == own && err == nil && id > 0 && !slices.Contains(pids, id) {
			pids = append(pids, id)
		}
	}
	return pids
}

// Process describes a process. It returns false if the process has ended.
func Process(pid int) (Host, bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return Host{}, false
	}
	h := Host{PID: pid, UID: -1, StateDir: stateDir(dir)}
	for line := range bytes.Lines(status) {
		switch name, value, _ := strings.Cut(string(line), ":"); name {
		case "Name":
			h.Program = strings.TrimSpace(value)
		case "Uid":
			if ids := strings.Fields(value); len(ids) > 1 {
				if uid, err := strconv.Atoi(ids[1]); err == nil { // the effective one
					h.UID = uid
				}
			}
		}
	}
	return h, true
}

// stateDir returns the state directory that a process has open, or "". It must belong to this
// account: another one could open files of its own to mislead us.
func stateDir(process string) string {
	files, err := os.ReadDir(filepath.Join(process, "fd"))
	if err != nil {
		return "" // of another account
	}
	open := map[string]int{}
	for _, file := range files {
		target, err := os.Readlink(filepath.Join(process, "fd", file.Name()))
		if err != nil {
			continue
		}
		switch dir, name := filepath.Split(target); name {
		case "lock":
			open[dir] |= 1
		case "toolhost.db":
			open[dir] |= 2
		}
	}
	for dir, both := range open {
		info, err := os.Stat(dir)
		if both != 3 || err != nil {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) == os.Geteuid() {
			return filepath.Clean(dir)
		}
	}
	return ""
}
