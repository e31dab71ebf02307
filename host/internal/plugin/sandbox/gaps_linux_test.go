package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
)

// TestGap: which errors mean that a layer is unavailable, so that the program is started without
// it. Temporary errors do not: otherwise a plugin that exhausts memory or processes could remove
// layers from others.
func TestGap(t *testing.T) {
	fork := func(errno syscall.Errno) error { return &forkError{&fs.PathError{Op: "fork/exec", Err: errno}} }
	step := func(layer Layer, errno syscall.Errno) error {
		return &launch.StepError{Text: "a step: " + errno.Error(), Layer: string(layer), Errno: errno}
	}
	for _, tt := range []struct {
		name  string
		err   error
		group bool // in a control group
		want  Layer
	}{
		{"a namespace is refused", fork(syscall.EPERM), false, LayerUserNS},
		{"no more are allowed", fork(syscall.ENOSPC), false, LayerUserNS},
		{"too deep", fork(syscall.EUSERS), false, LayerUserNS},
		{"unknown to the kernel", fork(syscall.EINVAL), false, LayerUserNS},
		{"a control group is not to be joined", fork(syscall.EACCES), true, LayerCgroup},
		{"a kernel without clone3", fork(syscall.ENOSYS), true, LayerCgroup},
		{"too many processes", fork(syscall.EAGAIN), true, ""},
		{"no memory for a process", fork(syscall.ENOMEM), true, ""},
		{"too many open files", fork(syscall.EMFILE), true, ""},
		{"the program is gone", fork(syscall.ENOEXEC), true, ""},
		{"Landlock is not there", step(LayerLandlock, syscall.ENOSYS), true, LayerLandlock},
		{"a mount is refused", step(LayerMounts, syscall.EPERM), true, LayerMounts},
		{"a group that is not to be made", step(LayerCgroup, 0), true, LayerCgroup},
		{"no memory for Landlock", step(LayerLandlock, syscall.ENOMEM), true, ""},
		{"no memory for a filter", step(LayerSeccomp, syscall.ENOMEM), true, ""},
		{"too many open files of the machine", step(LayerMounts, syscall.ENFILE), true, ""},
		{"too many processes of the user", step(LayerRunAs, syscall.EAGAIN), true, ""},
		{"a step of no layer", step("", syscall.EPERM), true, ""},
		{"no process was tried", syscall.EPERM, true, ""},
		{"it took too long", errSlowStart, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan := newPlan(&Profile{Confinement: Confinement{Isolation: Isolated, RunAs: RunAs{Mode: RunAsHost}}}, nil)
			plan.on[LayerCgroup] = tt.group
			got, ok := plan.gap(tt.err)
			if got.Layer != tt.want || ok != (tt.want != "") {
				t.Errorf("gap(%v) = %v, %v, want %q", tt.err, got, ok, tt.want)
			}
		})
	}
}

// TestRemember: layers that the machine lacks are not tried again. A failure that may be due to
// one plugin's paths or user does not count for others.
func TestRemember(t *testing.T) {
	l := newLauncher(t)
	var got []Layer
	for _, layer := range Layers() {
		l.remember(Gap{Layer: layer, Reason: "there is none"})
	}
	for _, layer := range Layers() {
		if _, ok := l.gaps()[layer]; ok {
			got = append(got, layer)
		}
	}
	ofProfiles := []Layer{LayerRlimits, LayerMounts, LayerRunAs, LayerCaps}
	want := slices.DeleteFunc(Layers(), func(layer Layer) bool { return slices.Contains(ofProfiles, layer) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("remembered (-want +got):\n%s", diff)
	}
}

// TestLaunchRemembers counts how often an unavailable layer is tried.
func TestLaunchRemembers(t *testing.T) {
	l := newLauncher(t)
	tried := 0
	l.newGroups = func() (*groups, error) {
		tried++
		return nil, errors.New("there are none")
	}
	p := profile(t, "limits")
	for i, tt := range []struct {
		name string
		do   func() (Report, error)
		want int
	}{
		{"an attempt remembers nothing", func() (Report, error) { return l.Try(t.Context(), p) }, 1},
		{"a start tries again", func() (Report, error) { return started(t, l, p).Report, nil }, 2},
		{"the next one knows", func() (Report, error) { return started(t, l, p).Report, nil }, 2},
	} {
		report, err := tt.do()
		must(t, err)
		if tried != tt.want {
			t.Errorf("%d, %s: tried %d times, want %d", i, tt.name, tried, tt.want)
		}
		if !slices.ContainsFunc(report.Missing, func(g Gap) bool { return g.Layer == LayerCgroup && g.Reason == "there are none" }) {
			t.Errorf("%d, %s: %v, want that there are no groups", i, tt.name, report)
		}
	}
}

// TestGapOfOnePlugin: a plugin whose own directory its user cannot reach runs as the
// host does. The next one, which has nothing to do with it, has every layer.
func TestGapOfOnePlugin(t *testing.T) {
	removeArena(t)
	s := newScene(t)
	t.Cleanup(s.close)
	l := newLauncher(t)
	report := func(edit func(p *Profile)) Report {
		p := s.profile([]string{"attack", "done"})
		p.Confinement.Isolation = Isolated
		edit(&p)
		return started(t, l, p).Report
	}
	want := report(func(*Profile) {})
	closed := report(func(p *Profile) {
		s.mkdir("closed", 0o700)
		p.Own = []string{s.mkdir("closed/own", 0o700)}
	})
	lacks := slices.ContainsFunc(closed.Missing, func(g Gap) bool { return g.Layer == LayerRunAs })
	if lacks != (os.Geteuid() == 0) {
		t.Fatalf("%v, want that root's plugin runs as root for want of a way to its directory", closed)
	}
	if diff := cmp.Diff(want, report(func(*Profile) {})); diff != "" {
		t.Errorf("another plugin's layers (-before +after):\n%s", diff)
	}
}

// TestDefaultProcesses: a bound of processes is set where it counts those of the
// sandbox. Elsewhere it would count what else the user runs.
func TestDefaultProcesses(t *testing.T) {
	named := RunAs{Mode: RunAsUser, UID: owner, GID: owner}
	noUsers := map[Layer]Gap{LayerUserNS: {Layer: LayerUserNS}}
	for _, tt := range []struct {
		name       string
		c          Confinement
		limit      uint64
		known      map[Layer]Gap
		root, user uint64
	}{
		{"a user of its own", Confinement{Isolation: Basic, RunAs: named}, 0, nil, DefaultProcesses, 0},
		{"a namespace of its own", Confinement{Isolation: Isolated, RunAs: RunAs{Mode: RunAsHost}}, 0, nil, 0, DefaultProcesses},
		{"both", Confinement{Isolation: Isolated, RunAs: named}, 0, nil, DefaultProcesses, DefaultProcesses},
		{"neither", Confinement{Isolation: Off, RunAs: RunAs{Mode: RunAsHost}}, 0, nil, 0, 0},
		{"no namespace is to be had", Confinement{Isolation: Isolated, RunAs: named}, 0, noUsers, DefaultProcesses, 0},
		{"as many as it likes", Confinement{Isolation: Isolated, RunAs: named, UnlimitedProcesses: true}, 0, nil, 0, 0},
		{"as many as is said", Confinement{Isolation: Isolated, RunAs: named}, 7, nil, 7, 7},
		{"as many as is said, without a bound", Confinement{Isolation: Off, UnlimitedProcesses: true}, 7, nil, 7, 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := profile(t)
			p.Confinement, p.Limits.Processes = tt.c, tt.limit
			want := tt.user
			if os.Geteuid() == 0 {
				want = tt.root
			}
			if got := newPlan(&p, tt.known).limits().Processes; got != want {
				t.Errorf("limits().Processes = %d, want %d", got, want)
			}
		})
	}
}
