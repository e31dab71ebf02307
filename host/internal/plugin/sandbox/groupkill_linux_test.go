package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// TestGroupIsKilled: the end of a program, and the order to end it, kill its control
// group too, whatever a walk of /proc has found. Few machines have one to give away,
// so this one is a directory, where what is written can be read.
func TestGroupIsKilled(t *testing.T) {
	l := newLauncher(t)
	p := profile(t, "inspect")
	pipes, err := openPipes()
	must(t, err)
	program, err := startLauncher(pipes, p.Binary, newPlan(&p, nil).attr(nil))
	must(t, err)
	pipes.closeTheirs()
	g := &group{dir: t.TempDir()}
	file := filepath.Join(g.dir, "cgroup.kill")
	must(t, os.WriteFile(file, nil, 0o600))
	killed := func(when string) {
		t.Helper()
		got, err := os.ReadFile(file)
		must(t, err)
		if string(got) != "1" {
			t.Errorf("%s: cgroup.kill = %q, want 1", when, got)
		}
		must(t, os.Truncate(file, 0))
	}
	proc := newProcess(program, pipes, g)
	defer proc.closeStdio()
	proc.Kill()
	killed("ordered to end")
	l.attend(proc)
	killed("after its end")
	proc.Kill() // its number may be another's, and so may its group
	if got, err := os.ReadFile(file); err != nil || len(got) > 0 {
		t.Errorf("ordered again: cgroup.kill = %q, %v, want nothing", got, err)
	}
}
