package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/landlock"
)

// Machine says what can be enforced here for programs of this process's user.
type Machine struct {
	// System and Arch are Go's names, e.g. "linux" and "amd64".
	System string `json:"system"`
	Arch   string `json:"arch"`
	// Kernel is the kernel's release.
	Kernel string `json:"kernel"`
	// UID is the user whom it holds for; 0 is root.
	UID int `json:"uid"`
	// Landlock is the version of the kernel's access rules for files, 0 if it
	// has none.
	Landlock int `json:"landlock"`
	// Levels are all but [Auto], the weakest first. Each was tried.
	Levels []Level `json:"levels"`
	// Strongest is the last level that works; [Auto] gives it, and what works of
	// those after it.
	Strongest Isolation `json:"strongest"`
	// Auto is what [Auto] gives.
	Auto Level `json:"auto"`
}

// Level is what one level of isolation gives on a machine.
type Level struct {
	Isolation Isolation `json:"isolation"`
	// Works says that nothing is missing that the level is made of.
	Works bool `json:"works"`
	// Sandbox is what is in force for a program that does without the rest.
	Sandbox Report `json:"sandbox"`
	// Problem says why not even such a program starts; "" if it does.
	Problem string `json:"problem,omitempty"`
}

// Examine tries every level with this very program, in temporary directories, and
// says what the machine can enforce. The error is about the attempt itself.
func (l *Launcher) Examine(ctx context.Context) (m Machine, err error) {
	m = Machine{System: runtime.GOOS, Arch: runtime.GOARCH, UID: os.Geteuid()}
	if m.Kernel, err = kernelRelease(); err != nil {
		return Machine{}, err
	}
	m.Landlock, _ = landlock.ABI() // why there is none is in the reports
	profile, done, err := exampleProfile()
	if err != nil {
		return Machine{}, err
	}
	defer func() { err = errors.Join(err, done()) }()
	for level := Off; level <= Strict; level++ {
		m.Levels = append(m.Levels, l.examine(ctx, profile, level))
		if m.Levels[len(m.Levels)-1].Works || level == Off {
			m.Strongest = level
		}
	}
	m.Auto = l.examine(ctx, profile, Auto)
	return m, context.Cause(ctx)
}

func (l *Launcher) examine(ctx context.Context, profile Profile, level Isolation) Level {
	profile.Confinement.Isolation = level
	example := func(text string) string { return strings.ReplaceAll(text, filepath.Dir(profile.Workspace), "/example") }
	report, err := l.Try(ctx, profile)
	if err != nil {
		return Level{Isolation: level, Problem: example(err.Error())}
	}
	works := true
	for i, gap := range report.Missing {
		works = works && !gap.Required
		report.Missing[i].Reason = example(gap.Reason)
	}
	return Level{Isolation: level, Works: works, Sandbox: report}
}

// exampleProfile is that of a program that reads a workspace. The caller removes
// its directories.
func exampleProfile() (p Profile, done func() error, err error) {
	// Not $TMPDIR: that is often below a directory that other users cannot pass.
	dir, err := os.MkdirTemp("/tmp", "toolhost-doctor-")
	if err != nil {
		return Profile{}, nil, err
	}
	self, err := selfPath()
	if err != nil {
		return Profile{}, nil, errors.Join(err, os.RemoveAll(dir))
	}
	binary, err := os.Open(self)
	if err != nil {
		return Profile{}, nil, errors.Join(err, os.RemoveAll(dir))
	}
	done = func() error { return errors.Join(binary.Close(), os.RemoveAll(dir)) }
	p = Profile{
		Binary: binary, Path: "doctor", Limits: DefaultLimits(),
		Confinement: Confinement{WarnOnMissing: true, Workspace: ReadWorkspace},
		Workspace:   filepath.Join(dir, "workspace"), Own: []string{filepath.Join(dir, "state", "own")}, Tmp: filepath.Join(dir, "tmp"),
		Hidden: []string{filepath.Join(dir, "state")},
	}
	p.Dir = p.Workspace
	// Any user can reach them, as a workspace that is not root's alone, but for what
	// is in the state directory.
	err = errors.Join(os.Chmod(dir, 0o755), os.Mkdir(p.Hidden[0], 0o700)) //nolint:gosec // nothing is in it
	for _, path := range append([]string{p.Workspace, p.Tmp}, p.Own...) {
		err = errors.Join(err, os.Mkdir(path, 0o700), os.Chmod(path, 0o755)) //nolint:gosec // whatever the umask
	}
	if err != nil {
		return Profile{}, nil, errors.Join(err, done())
	}
	return p, done, nil
}

func kernelRelease() (string, error) {
	var names unix.Utsname
	if err := unix.Uname(&names); err != nil {
		return "", fmt.Errorf("ask for the kernel's release: %w", err)
	}
	return unix.ByteSliceToString(names.Release[:]), nil
}
