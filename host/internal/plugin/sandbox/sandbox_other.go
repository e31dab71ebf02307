//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"syscall"

	"github.com/toolhost/toolhost/internal/proctree"
)

// This file replaces the files for Linux on other systems: resource limits, and process groups.

// SelfPath returns the file of this program.
func SelfPath() (string, error) { return os.Executable() }

// socketPair has no use: there are no network namespaces.
func socketPair() (pipe, error) { return pipe{}, errors.ErrUnsupported }

func (*talk) listener() (net.Listener, error) { return nil, errors.ErrUnsupported }

// attr puts a launcher into its own session.
func (p *plan) attr(*group) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// keepDescriptors has no use: Go marks the descriptors that it opens.
func keepDescriptors() error { return nil }

// always returns what every program has besides its limits.
func always() []string { return []string{"session", "umask 077"} }

// missingHere returns the layers that this system never has.
func missingHere() map[Layer]Gap {
	gaps := map[Layer]Gap{}
	for _, layer := range Layers() {
		if layer != LayerRlimits {
			gaps[layer] = Gap{Layer: layer, Reason: runtime.GOOS + " has none", Remedy: "run the host on Linux"}
		}
	}
	return gaps
}

type groups struct {
	missing     Gap
	controllers []string
}

func newGroups() (*groups, error) { return nil, errors.New(runtime.GOOS + " has none") }

func (*groups) make(string, Limits) (*group, error) { return nil, errors.ErrUnsupported }

func (*groups) close() {}

type group struct{ file *os.File }

func (*group) kill() {}

func (*group) outOfMemory() bool { return false }

func (*group) remove() {}

// This system cannot adopt orphans. A program is killed with its process group, and a
// process that left the group survives.

// reap waits for the program's end and kills its process group.
func (p *Process) reap() {
	// It cannot fail for a child that only this code reaps.
	p.exit.State, _ = p.program.Wait()
	p.markEnded()
	proctree.KillGroup(p.pid)
}

func killOrphans(uint64) (killed, left int) { return 0, 0 }

// reaper exists on Linux only.
type reaper struct{}

func (l *Launcher) watchOver(*Process) error { return nil }

func (l *Launcher) release(p *Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.live, p)
}

func (l *Launcher) closeReaper() {}

type place struct{}

func (*plan) places() []place { return nil }

// Exposed returns nothing: this system protects no files.
func (*Process) Exposed() []string { return nil }

// Reprotect returns nothing: no file is exposed.
func (*Process) Reprotect(context.Context, []string) (still []string) { return nil }

// FileID identifies a file.
type FileID struct{}

// Identify returns the zero value.
func Identify(string) FileID { return FileID{} }

// ReadOnly returns false: this system does not tell.
func ReadOnly(string) bool { return false }
