// Package hosts tells which processes of this machine are hosts of a configuration, and which
// configuration a state directory belongs to.
//
// A host marks its configuration with a shared lock, which the system removes with the process.
// The kernel tells process and account. A process can choose its name, and any process that can
// read the configuration can lock it, so a host is only told about, never obeyed. On a system
// that does not list locks, no other host is found.
package hosts

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Host is a process that is a host.
type Host struct {
	PID int
	// UID is the number of its account; -1 if it is not known.
	UID int
	// Program is the name of its program; "" if it is not known.
	Program string
	// StateDir is its state directory; "" if it is not of this account, or not known.
	StateDir string
}

// String describes the host for people.
func (h Host) String() string {
	text := "process " + strconv.Itoa(h.PID)
	if h.Program != "" {
		text += fmt.Sprintf(" (%s)", h.Program)
	}
	if h.UID >= 0 {
		text += " of account " + Account(h.UID)
	}
	if h.StateDir != "" {
		text += " with the state directory " + h.StateDir
	}
	return text
}

// Account returns the name of an account, or its number if it has no name.
func Account(uid int) string {
	if account, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return account.Username
	}
	return strconv.Itoa(uid)
}

// Mark shows other processes that this one is a host of a configuration.
type Mark struct {
	path string
	mu   sync.Mutex // guards file
	file *os.File   // locked; nil if there is no mark
}

// NewMark marks a configuration, a file or a directory. Where that is not possible, such as on
// a file system without locks, no other process sees this host.
func NewMark(path string) *Mark {
	m := &Mark{path: path}
	m.Renew()
	return m
}

// Renew marks the configuration again if its file was replaced.
func (m *Mark) Renew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := os.Stat(m.path) //nolint:gosec // the path is the operator's
	if err != nil {
		return // moved or removed; the mark moves with the file
	}
	if m.file != nil {
		if marked, err := m.file.Stat(); err == nil && os.SameFile(now, marked) {
			return
		}
	}
	f, err := os.OpenFile(m.path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the path is the operator's
	if err != nil {
		return
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil {
		_ = f.Close() // nothing was written
		return
	}
	if m.file != nil {
		_ = m.file.Close() // nothing was written
	}
	m.file = f
}

// Close removes the mark.
func (m *Mark) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil {
		return nil
	}
	err := m.file.Close()
	m.file = nil
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
