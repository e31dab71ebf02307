package proc_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/proc/internal/reaper"
)

// leafKinds are the ways in which a command tries to leave something behind. All leaves keep
// its output open.
var leafKinds = []string{"child", "session", "daemon", "deaf", "stopped", "adopter", "reaper stopped"}

func TestNothingSurvives(t *testing.T) {
	for _, kind := range leafKinds {
		for _, grace := range []time.Duration{0, time.Millisecond} {
			for _, end := range []struct {
				name string
				by   func(*proc.Process, expiring, context.CancelFunc)
				want proc.Result
			}{
				{"timeout", func(_ *proc.Process, e expiring, _ context.CancelFunc) { close(e.done) }, proc.Result{TimedOut: true}},
				{"cancel", func(_ *proc.Process, _ expiring, cancel context.CancelFunc) { cancel() }, proc.Result{Canceled: true}},
				{"kill", func(p *proc.Process, _ expiring, _ context.CancelFunc) { p.Kill(); p.Kill() }, proc.Result{Killed: true}},
				{"own end", func(p *proc.Process, _ expiring, _ context.CancelFunc) { p.Stdin.Close() }, proc.Result{Background: true}},
			} {
				t.Run(kind+"/"+end.name+"/"+grace.String(), func(t *testing.T) {
					deadline := newExpiring(t)
					ctx, cancel := context.WithCancel(deadline)
					defer cancel()
					c := command("parent", kind)
					c.OpenStdin, c.Grace = true, grace
					out := tap(t, &c)
					p, err := proc.Start(ctx, c)
					if err != nil {
						t.Fatal(err)
					}
					leaf := watch(t, readPID(t, out))

					end.by(p, deadline, cancel)
					got, err := p.Wait()
					if err != nil {
						t.Errorf("Wait() = %v", err)
					}
					if !leaf.gone(0) {
						t.Error("Wait has returned, and the leaf lives")
					}
					if got.TimedOut != end.want.TimedOut || got.Canceled != end.want.Canceled ||
						got.Killed != end.want.Killed || got.Background != end.want.Background || got.Survivors != 0 {
						t.Errorf("Wait() = %+v, want %s", got, end.name)
					}
					if end.want.Background && (got.ExitCode != 0 || got.Strays == 0) {
						t.Errorf("Wait() = %+v, want exit code 0 and strays", got)
					}
					if err := p.Signal(unix.SIGINT); !errors.Is(err, os.ErrProcessDone) {
						t.Errorf("Signal() = %v, want %v", err, os.ErrProcessDone)
					}
					p.Kill() // must do nothing
				})
			}
		}
	}
}

// TestControlSomethingSurvives is the control: killing the process group leaves processes
// outside the group, and the end of the command leaves everything.
func TestControlSomethingSurvives(t *testing.T) {
	for _, kind := range leafKinds[:6] {
		for _, end := range []string{"group", "own end"} {
			if end == "group" && !slices.Contains([]string{"session", "daemon", "adopter"}, kind) {
				continue // a group kill reaches these
			}
			t.Run(kind+"/"+end, func(t *testing.T) {
				r, w, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				cmd := exec.Command("/proc/self/exe", "parent", kind)
				cmd.Stdout, cmd.Stderr = w, w
				cmd.Env = []string{"GORACE=atexit_sleep_ms=0"}
				cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				stdin, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				defer stdin.Close()
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				w.Close()
				leaf := watch(t, readPID(t, bufio.NewReader(r)))
				if end == "group" {
					if err := unix.Kill(-cmd.Process.Pid, unix.SIGKILL); err != nil {
						t.Fatal(err)
					}
				}
				stdin.Close()
				_ = cmd.Wait() // ends with a signal
				if leaf.gone(0) {
					t.Error("the leaf is gone")
				}
			})
		}
	}
}

// TestNothingSurvivesThePlugin kills or ends the plugin while its command runs.
func TestNothingSurvivesThePlugin(t *testing.T) {
	for _, kind := range leafKinds {
		for name, end := range pluginEnds() {
			t.Run(kind+"/"+name, func(t *testing.T) {
				leaf := endPlugin(t, end, "plugin", "parent", kind)
				if !leaf.gone(patience) {
					t.Error("the leaf lives on")
				}
			})
		}
	}
}

// TestControlSomethingSurvivesThePlugin is the control: processes that were started without
// this package live on.
func TestControlSomethingSurvivesThePlugin(t *testing.T) {
	for _, kind := range leafKinds[:6] {
		for name, end := range pluginEnds() {
			t.Run(kind+"/"+name, func(t *testing.T) {
				if endPlugin(t, end, "plain", "parent", kind).gone(0) {
					t.Error("the leaf is gone")
				}
			})
		}
	}
}

func pluginEnds() map[string]func(*exec.Cmd, io.Closer) error {
	return map[string]func(*exec.Cmd, io.Closer) error{
		"kill -9": func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Kill() },
		"exit":    func(_ *exec.Cmd, stdin io.Closer) error { return stdin.Close() },
	}
}

// endPlugin starts a plugin with a command, ends the plugin and returns the command's leaf.
func endPlugin(t *testing.T, end func(*exec.Cmd, io.Closer) error, args ...string) handle {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Stderr = os.Stderr
	cmd.Env = []string{"GORACE=atexit_sleep_ms=0"}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	r, w, err := os.Pipe() // unlike StdoutPipe's, Wait does not close it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	leaf := watch(t, readPID(t, bufio.NewReader(r)))
	if err := end(cmd, stdin); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // ends with a signal
	return leaf
}

// TestReaperKilled checks that a command that kills its reaper gains nothing: it dies, and the
// plugin kills the remaining processes, but nothing else that it has started.
func TestReaperKilled(t *testing.T) {
	other := exec.Command("/proc/self/exe", "leaf")
	said, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Wait() }()
	defer func() { _ = other.Process.Kill() }()
	stranger := watch(t, readPID(t, bufio.NewReader(said)))

	c := command("parent", "session")
	c.OpenStdin = true
	out := tap(t, &c)
	sibling, err := proc.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	spared := watch(t, readPID(t, out))

	c = command("parent", "reaper killed")
	c.OpenStdin = true
	out = tap(t, &c)
	p, err := proc.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	first, second := watch(t, readPID(t, out)), watch(t, readPID(t, out))
	if _, err := io.WriteString(p.Stdin, "\n"); err != nil {
		t.Fatal(err)
	}
	got, err := p.Wait()
	if err == nil || got.ExitCode != -1 || got.Survivors != 0 || got.Strays == 0 {
		t.Errorf("Wait() = %+v, %v, want an error and strays", got, err)
	}
	if !first.gone(0) || !second.gone(0) {
		t.Error("a leaf lives")
	}
	if stranger.gone(0) || spared.gone(0) {
		t.Error("the plugin has killed another process than the command's")
	}
	sibling.Kill()
	if _, err := sibling.Wait(); err != nil {
		t.Error(err)
	}
}

// TestReaperHeld checks the same for a command that keeps its reaper from running.
func TestReaperHeld(t *testing.T) {
	c := command("parent", "reaper held")
	out := tap(t, &c)
	p, err := proc.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	leaf := watch(t, readPID(t, out))
	p.Kill()
	// If the reaper has run for a moment, there is no error.
	if got, err := p.Wait(); got.Survivors != 0 || !got.Killed {
		t.Errorf("Wait() = %+v, %v", got, err)
	}
	if !leaf.gone(0) {
		t.Error("the leaf lives")
	}
}

func TestRabbit(t *testing.T) {
	c := command("rabbit")
	out := tap(t, &c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, err := proc.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	readPID(t, out)
	cancel()
	if got, err := p.Wait(); err != nil || got.Survivors != 0 {
		t.Errorf("Wait() = %+v, %v", got, err)
	}
}

// TestReaperIsNotEnteredByAccident checks that neither an argument nor the name alone makes a
// plugin a reaper.
func TestReaperIsNotEnteredByAccident(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, tt := range []struct {
		name  string
		args  []string
		files []*os.File
		want  string
	}{
		{"the name alone", []string{reaper.Name}, nil, "this is main\n"},
		{"an argument more", []string{reaper.Name, "count"}, []*os.File{r, w}, "this is main\n"},
		{"as an argument", []string{"program", "count", reaper.Name}, []*os.File{r, w}, "1 15\n"},
		{"one pipe", []string{reaper.Name}, []*os.File{r}, "this is main\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe")
			cmd.Args, cmd.ExtraFiles = tt.args, tt.files
			cmd.Env = []string{"GORACE=atexit_sleep_ms=0"}
			if out, err := cmd.Output(); err != nil || string(out) != tt.want {
				t.Errorf("%q prints %q, %v, want %q", tt.args, out, err, tt.want)
			}
		})
	}
}

// TestAsOrdinaryUser runs the tests in this file again as an ordinary user, since they must
// not need root.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		return // this is an ordinary user
	}
	tests, seed := "^Test(NothingSurvivesThePlugin", soak.Seed(t)
	for i, name := range []string{"Nothing|Control", "Reaper|Rabbit|Many"} {
		if soak.Today(seed, i, 2) {
			tests += "|" + name
		}
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", tests+")", "-test.v")
	cmd.Dir = "/"
	cmd.Env = []string{"TMPDIR=" + os.TempDir(), "GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestNothingSurvivesThePlugin") {
		t.Errorf("as user 65534: %v\n%s", err, out)
	}
}
