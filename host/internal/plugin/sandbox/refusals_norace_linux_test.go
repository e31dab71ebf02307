//go:build !race

package sandbox

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The race detector does not start on every one of these machines.

// TestAttackWithoutLandlockAndMounts: on a machine without any layer that keeps a program from
// the host's files, it is started only if the configuration says so.
func TestAttackWithoutLandlockAndMounts(t *testing.T) {
	const landlock, mounts = "no Landlock in the kernel", "mounts refused"
	exec := []string{ExecSystem}
	for _, tt := range []struct {
		name    string
		lacks   []string
		c       Confinement
		refused bool
	}{
		{"both are there", nil, Confinement{Exec: exec}, false},
		{"no Landlock", []string{landlock}, Confinement{Exec: exec}, false},
		{"no mounts", []string{mounts}, Confinement{Exec: exec}, false},
		{"neither", []string{landlock, mounts}, Confinement{Exec: exec}, true},
		{"neither, at a level that has no mounts", []string{landlock, mounts}, Confinement{Exec: exec, Isolation: Basic}, true},
		{"neither, but only warned", []string{landlock, mounts}, Confinement{Exec: exec, WarnOnMissing: true}, false},
		{"neither, and it executes nothing", []string{landlock, mounts}, Confinement{}, true},
		{"neither, it executes nothing, and it is only warned", []string{landlock, mounts}, Confinement{WarnOnMissing: true}, false},
		{"neither, and it is not confined", []string{landlock, mounts}, Confinement{Exec: exec, Isolation: Off}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := startLacking(t, tt.c, tt.lacks...)
			switch {
			case tt.refused && (got.Missing != LayerLandlock || !strings.Contains(got.Error, `set on_missing = "warn"`)):
				t.Errorf("printed %q, error %q; want a missing %s and what to do", got.Output, got.Error, LayerLandlock)
			case !tt.refused && got.Output != "done\n":
				t.Errorf("printed %q, error %q; want a start", got.Output, got.Error)
			}
			for _, name := range tt.lacks {
				if layer := machines()[name].lacks; !tt.refused && tt.c.Isolation == Auto && !reports(got.Report, layer) {
					t.Errorf("%v, want a missing %s", got.Report, layer)
				}
			}
		})
	}
}

// TestAttackByScarcity: a plugin that exhausts the kernel's resources must not make another
// start with fewer layers. That one starts later.
func TestAttackByScarcity(t *testing.T) {
	for name, m := range map[string]machine{
		"no memory for Landlock":     {call: unix.SYS_LANDLOCK_CREATE_RULESET, errno: unix.ENOMEM},
		"no memory for a filter":     {call: unix.SYS_SECCOMP, errno: unix.ENOMEM},
		"no memory for a mount":      {call: unix.SYS_OPEN_TREE, errno: unix.ENOMEM},
		"no memory for capabilities": {call: unix.SYS_CAPSET, errno: unix.ENOMEM},
		"no more processes":          {call: unix.SYS_CLONE, flags: unix.CLONE_NEWPID, errno: unix.EAGAIN},
		"no memory for a namespace":  {call: unix.SYS_CLONE, flags: unix.CLONE_NEWPID, errno: unix.ENOMEM},
	} {
		t.Run(name, func(t *testing.T) {
			got := m.start(t, Confinement{})
			if got.Missing != "" || !strings.Contains(got.Error, m.errno.Error()) {
				t.Errorf("printed %q, error %q, %v; want the error %q", got.Output, got.Error, got.Report, m.errno)
			}
		})
	}
}
