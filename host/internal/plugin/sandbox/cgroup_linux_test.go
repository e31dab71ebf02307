package sandbox

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/tool"
)

func TestOwnGroup(t *testing.T) {
	const (
		plain  = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
		hybrid = "41 33 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n46 33 0:35 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		inside = "46 33 0:35 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
	)
	for _, tt := range []struct{ name, mountinfo, cgroup, want, err string }{
		{"a service", plain, "0::/system.slice/toolhost.service\n", "/sys/fs/cgroup/system.slice/toolhost.service", ""},
		{"the root", plain, "0::/\n", "/sys/fs/cgroup", ""},
		{"beside version 1", hybrid, "4:memory:/x\n0::/y\n", "/sys/fs/cgroup/unified/y", ""},
		{"a container that sees its own", inside, "0::/docker/abc\n", "/sys/fs/cgroup", ""},
		{"a container that sees another", inside, "0::/\n", "", "not mounted"},
		{"version 1 alone", "41 33 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "4:memory:/x\n", "", "no group of version 2"},
		{"nothing", "", "", "", "no group of version 2"},
		{"nonsense", "a - cgroup2 \n\n - \n", "0::/x\n", "", "not mounted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ownGroup([]byte(tt.mountinfo), []byte(tt.cgroup))
			if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("ownGroup() = %q, %v, want %q, %q", got, err, tt.want, tt.err)
			}
		})
	}
}

// TestGroupLimits creates a group in an ordinary directory, where the written values can be
// read: few machines delegate the controllers.
func TestGroupLimits(t *testing.T) {
	for _, tt := range []struct {
		name        string
		controllers []string
		limits      Limits
		want        map[string]string
	}{
		{"none are there", nil, Limits{Memory: tool.GiB, Processes: 7}, map[string]string{}},
		{"none are set", []string{"memory", "pids"}, Limits{}, map[string]string{}},
		{"memory", []string{"memory"}, Limits{Memory: tool.GiB, Processes: 7}, map[string]string{
			"memory.max": "1073741824", "memory.swap.max": "0", "memory.oom.group": "1",
		}},
		{"processors", []string{"cpu"}, Limits{CPUs: 1.5, Memory: 7}, map[string]string{"cpu.max": "150000 100000"}},
		{"processes", []string{"memory", "pids"}, Limits{Processes: 7}, map[string]string{"pids.max": "7"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := &groups{dir: t.TempDir(), controllers: tt.controllers}
			g, err := all.make("fs", tt.limits)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			names, err := g.file.Readdirnames(-1)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				text, err := os.ReadFile(filepath.Join(g.dir, name))
				if err != nil {
					t.Fatal(err)
				}
				got[name] = string(text)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if err := g.file.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestOutOfMemory(t *testing.T) {
	for text, want := range map[string]bool{
		"low 0\nhigh 0\nmax 31\noom 1\noom_kill 2\noom_group_kill 1\n": true,
		"max 31\noom 1\noom_kill 0\n":                                  false,
		"":                                                             false,
	} {
		g := &group{dir: t.TempDir()}
		if err := os.WriteFile(filepath.Join(g.dir, "memory.events"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := g.outOfMemory(); got != want {
			t.Errorf("outOfMemory() with %q = %t, want %t", text, got, want)
		}
	}
	if (&group{dir: t.TempDir()}).outOfMemory() || (*group)(nil).outOfMemory() {
		t.Error("a group without events has run out of memory")
	}
}

// TestPrograms run in their own group, if this process may make one, and the group is removed
// with them.
func TestGroupOfAProgram(t *testing.T) {
	l := newLauncher(t)
	p := profile(t, "parent", "session")
	p.Confinement = Confinement{Isolation: Basic, Exec: []string{ExecSystem}}
	proc := started(t, l, p)
	if l.groups == nil {
		if _, why := newGroups(); !slices.ContainsFunc(proc.Report.Missing, func(g Gap) bool { return g.Layer == LayerCgroup && g.Reason == why.Error() }) {
			t.Errorf("groups cannot be had (%v), but the report is %v", why, proc.Report)
		}
		return
	}
	out := bufio.NewReader(proc.Stdout)
	leaf := readPID(t, out)
	var dirs []string
	for _, pid := range []int{proc.PID(), leaf} {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
		if err != nil {
			t.Fatal(err)
		}
		_, path, _ := strings.Cut(string(text), "0::")
		if !strings.HasSuffix(path, "/test-1\n") {
			t.Fatalf("process %d is in %q, want a group of its own", pid, path)
		}
		dirs = append(dirs, filepath.Join(l.groups.dir, "test-1"))
	}
	proc.group.kill()
	if exit := proc.Exit(); exit.State.Success() || exit.Survivors > 0 {
		t.Errorf("the end of its group left %+v", exit)
	}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want that it is gone", dir, err)
		}
	}
}

// TestSweepGroups removes what dead launchers have left, and nothing else.
func TestSweepGroups(t *testing.T) {
	parent := t.TempDir()
	for _, name := range []string{"toolhost.1.alive", "toolhost.1.gone", "other"} {
		if err := os.Mkdir(filepath.Join(parent, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	lock := lockGroup(filepath.Join(parent, "toolhost.1.alive"))
	if lock == nil {
		t.Fatal("the group cannot be locked")
	}
	defer lock.Close()
	sweepGroups(parent)
	entries, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	if diff := cmp.Diff([]string{"other", "toolhost.1.alive"}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}
