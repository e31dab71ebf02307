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

// Machine describes what this machine can enforce for programs of the present user.
type Machine struct {
	// System and Arch are Go's names, e.g. "linux" and "amd64".
	System string `json:"system"`
	Arch   string `json:"arch"`
	// Kernel is the kernel's release.
	Kernel string `json:"kernel"`
	// UID is that user; 0 is root.
	UID int `json:"uid"`
	// Landlock is the version of the kernel's access rules for files; 0 if it has none.
	Landlock int `json:"landlock"`
	// Levels are all levels except [Auto], weakest first. Each was tried.
	Levels []Level `json:"levels"`
	// Strongest is the strongest level that works completely. [Auto] gives it, and the
	// layers of stronger levels that work.
	Strongest Isolation `json:"strongest"`
	// Auto is the result of [Auto].
	Auto Level `json:"auto"`
}

// Level is the result of one level of isolation on a machine.
type Level struct {
	Isolation Isolation `json:"isolation"`
	// Works is set if all layers of the level work.
	Works bool `json:"works"`
	// Sandbox is the confinement of a program that starts without the missing layers.
	Sandbox Report `json:"sandbox"`
	// Problem explains why not even such a program starts; "" if it does.
	Problem string `json:"problem,omitempty"`
}

// Examine tries every level with the host's own program, in temporary directories. The error
// is about the attempt itself.
func (l *Launcher) Examine(ctx context.Context) (m Machine, err error) {
	m = Machine{System: runtime.GOOS, Arch: runtime.GOARCH, UID: os.Geteuid()}
	if m.Kernel, err = kernelRelease(); err != nil {
		return Machine{}, err
	}
	m.Landlock, _ = landlock.ABI() // the reports explain an absence
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

// exampleProfile returns the profile of a program that reads a workspace. done removes its
// directories.
func exampleProfile() (p Profile, done func() error, err error) {
	// Not $TMPDIR, which is often below a directory that other users cannot enter.
	dir, err := os.MkdirTemp("/tmp", "toolhost-doctor-")
	if err != nil {
		return Profile{}, nil, err
	}
	self, err := SelfPath()
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
	// Any user can reach them, except those in the state directory.
	err = errors.Join(os.Chmod(dir, 0o755), os.Mkdir(p.Hidden[0], 0o700)) //nolint:gosec // it is empty
	for _, path := range append([]string{p.Workspace, p.Tmp}, p.Own...) {
		err = errors.Join(err, os.Mkdir(path, 0o700), os.Chmod(path, 0o755)) //nolint:gosec // it is empty
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
