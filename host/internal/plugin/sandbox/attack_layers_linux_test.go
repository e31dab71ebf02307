package sandbox

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/protect"
)

// Files that a plugin leaves in the places that it may write must not cost it, or another
// plugin, a layer at any later start.
func TestAttackOnLayers(t *testing.T) {
	removeArena(t)
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, data string)
	}{
		{"nothing", func(*testing.T, string) {}},
		{"a loop of symbolic links", func(t *testing.T, data string) {
			t.Helper()
			must(t, os.Symlink(data, data))
		}},
		{"a symbolic link to nothing", func(t *testing.T, data string) {
			t.Helper()
			must(t, os.Symlink("/nothing/there", data))
		}},
		{"a symbolic link to itself by way of /proc", func(t *testing.T, data string) {
			t.Helper()
			must(t, os.Symlink("/proc/self/cwd", data))
		}},
		{"a closed directory", func(t *testing.T, data string) {
			t.Helper()
			must(t, os.MkdirAll(data, 0o755))
			must(t, os.Chmod(filepath.Dir(data), 0))
			t.Cleanup(func() { must(t, os.Chmod(filepath.Dir(data), 0o755)) })
		}},
		{"a FIFO", func(t *testing.T, data string) {
			t.Helper()
			must(t, unix.Mkfifo(data, 0o666))
		}},
		{"a socket", func(t *testing.T, data string) {
			t.Helper()
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			must(t, err)
			t.Cleanup(func() { unix.Close(fd) })
			must(t, bindBelow(fd, data))
		}},
		{"a file that nobody may open", func(t *testing.T, data string) {
			t.Helper()
			must(t, os.WriteFile(data, nil, 0))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			t.Cleanup(s.close)
			l := newLauncher(t)
			must(t, os.Mkdir(s.workspace+"/a", 0o755))
			data := s.workspace + "/a/b"
			tt.spoil(t, data)
			p := s.profile([]string{"attack", "read", s.home + "/public"})
			p.Confinement.Read, p.Confinement.Write = []string{data}, []string{data + "2"}
			s.unspoiled(t, l, p, true)
			// And another plugin, which has nothing to do with it.
			s.unspoiled(t, l, s.profile([]string{"attack", "read", s.home + "/public"}), false)
		})
	}
}

// unspoiled starts a plugin that must have every layer but control groups, or must
// not be started if that may be.
func (s *scene) unspoiled(t *testing.T, l *Launcher, p Profile, mayFail bool) {
	t.Helper()
	proc, err := l.Launch(t.Context(), p)
	if err != nil {
		if !mayFail {
			t.Error(err)
		}
		return
	}
	defer proc.closeStdio()
	_, err = io.ReadAll(proc.Stdout)
	must(t, err)
	<-proc.Done()
	for _, gap := range proc.Report.Missing {
		if gap.Layer != LayerCgroup {
			t.Errorf("it runs without %v", gap)
		}
	}
}

// Between the host's order and the launcher, another plugin that may write the same workspace
// replaces a path to bind by a link. The host has checked the path before.
func TestAttackBetweenOrderAndStart(t *testing.T) {
	removeArena(t)
	for _, tt := range []struct {
		name    string
		swap    bool
		refused bool
	}{{"nothing is swapped", false, false}, {"a link takes its place", true, true}} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			t.Cleanup(s.close)
			data := s.mkdir("workspace/data", 0o755)
			p := s.profile([]string{"attack", "read", data + "/public"})
			p.Confinement.Read = []string{data}
			p.Confinement.Isolation = Strict
			must(t, p.check())
			pl := newPlan(&p, nil)
			pl.drop(Gap{Layer: LayerCgroup})
			l := newLauncher(t)
			must(t, l.handOver(t.Context(), pl))
			order, err := pl.order().Encode()
			must(t, err)
			if tt.swap {
				must(t, os.Remove(data))
				must(t, os.Symlink(s.home, data))
			}
			proc, talk, err := l.fork(t.Context(), pl, nil)
			must(t, err)
			defer proc.closeStdio()
			defer talk.close()
			_, err = talk.run(order)
			if (err != nil) != tt.refused {
				t.Errorf("error = %v, want one: %v", err, tt.refused)
			}
			if _, ok := pl.gap(err); ok {
				t.Errorf("%v: it would be started again with a layer less", err)
			}
			out, err := io.ReadAll(proc.Stdout)
			must(t, err)
			if strings.Contains(string(out), s.secret) {
				t.Error("it has read what the link leads to")
			}
			<-proc.Done()
		})
	}
}

// TestReplacedDuringStart: a protected file may be replaced again and again while programs
// are started. Each is started, with the mounts that keep it from the file.
func TestReplacedDuringStart(t *testing.T) {
	removeArena(t)
	s := newScene(t)
	t.Cleanup(s.close)
	config := s.write("workspace/.git/config", "", 0o644)
	p := s.profile([]string{"inspect"})
	p.Confinement.Presets = protect.Presets()
	p.Confinement.Isolation = Isolated
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() { // ends when stop is closed
		var err error
		for err == nil {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if err = os.WriteFile(config+".lock", nil, 0o644); err == nil {
				err = os.Rename(config+".lock", config)
			}
		}
		stopped <- err
	}()
	l := newLauncher(t)
	for range soak.Rounds(10, 200) {
		report, err := l.Try(t.Context(), p)
		if err != nil || !slices.Contains(report.Layers, "mounts:ro") {
			t.Errorf("Try = %v, %v, want the mounts", report, err)
			break
		}
	}
	close(stop)
	must(t, <-stopped)
}
