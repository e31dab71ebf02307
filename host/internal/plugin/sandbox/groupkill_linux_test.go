package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// TestGroupIsKilled: when a program ends, or is ordered to end, its control group is killed too,
// even if a walk of /proc has found all processes. Few machines can give one to tests, so this
// one is a directory, where the written values can be read.
func TestGroupIsKilled(t *testing.T) {
	l := newLauncher(t)
	p := profile(t, "inspect")
	pipes, err := openPipes(false)
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
