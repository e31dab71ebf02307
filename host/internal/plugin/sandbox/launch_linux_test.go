package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
	"github.com/toolhost/toolhost/internal/testprogram"
	"github.com/toolhost/toolhost/sdk/tool"
)

// inspected launches p, which must act as "inspect", and returns its report.
func inspected(t *testing.T, p Profile) (state, *Process) {
	t.Helper()
	proc := started(t, newLauncher(t), p)
	out := readAll(t, proc)
	var s state
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		stderr, _ := io.ReadAll(proc.Stderr)
		t.Fatalf("inspect printed %q: %v\n%s", out, err, stderr)
	}
	return s, proc
}

func TestLaunchGivesOnlyWhatTheProfileSays(t *testing.T) {
	// A descriptor that any child of this process inherits.
	leaked, err := unix.Dup(1)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leaked)
	t.Setenv("HOST_SECRET", "hunter2")

	p := profile(t, "inspect", "", "two words", "\xff")
	p.Env = []string{"EMPTY=", "LATIN1=\xe9t\xe9", "LAST=x=y"}
	p.Dir = t.TempDir()
	got, proc := inspected(t, p)

	if diff := cmp.Diff(append([]string{p.Path}, p.Args...), got.Args); diff != "" {
		// JSON has replaced invalid UTF-8.
		if got.Args[4] != "\ufffd" {
			t.Errorf("arguments (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff([]string{"EMPTY=", "LATIN1=\ufffdt\ufffd", "LAST=x=y"}, got.Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if got.Dir != p.Dir {
		t.Errorf("directory = %q, want %q", got.Dir, p.Dir)
	}
	if diff := cmp.Diff(map[string]string{"0": "pipe", "1": "pipe", "2": "pipe"}, got.Descriptors); diff != "" {
		t.Errorf("descriptors (-want +got):\n%s", diff)
	}
	if !strings.Contains(got.Status, "\nNoNewPrivs:\t1\n") {
		t.Errorf("no_new_privs is not set:\n%s", got.Status)
	}
	if !got.Subreaper {
		t.Error("the program is no subreaper")
	}
	if got.Umask != 0o077 {
		t.Errorf("umask = %#o, want 077", got.Umask)
	}
	if got.Session != proc.PID() {
		t.Errorf("session = %d, want its own, %d", got.Session, proc.PID())
	}
	want := []string{"rlimits", "no_new_privs", "pdeathsig", "reaper", "subreaper", "session", "descriptors closed", "umask 077"}
	// A control group depends on the machine: see TestGroupOfAProgram.
	layers := slices.DeleteFunc(slices.Clone(proc.Report.Layers), func(layer string) bool { return strings.HasPrefix(layer, "cgroup:") })
	if diff := cmp.Diff(want, layers); diff != "" {
		t.Errorf("layers (-want +got):\n%s", diff)
	}
}

// The control for the test above: without a launcher, a child gets the
// descriptor and the variable.
func TestControlChildInherits(t *testing.T) {
	leaked, err := unix.Dup(1)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leaked)
	t.Setenv("HOST_SECRET", "hunter2")
	// Like os/exec, this hides no leaked descriptor.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	child, err := os.StartProcess("/proc/self/exe", []string{"test", "inspect"}, &os.ProcAttr{Files: []*os.File{nil, w, w}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	var got state
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("inspect printed %q: %v", out, err)
	}
	if _, ok := got.Descriptors[strconv.Itoa(leaked)]; !ok {
		t.Errorf("descriptors = %v, without the leaked %d", got.Descriptors, leaked)
	}
	if !strings.Contains(strings.Join(got.Env, "\n"), "HOST_SECRET") {
		t.Error("the variable was not inherited")
	}
}

func TestLaunchSetsLimits(t *testing.T) {
	p := profile(t, "inspect")
	p.Limits = Limits{
		Memory:       513*tool.MiB + 8,
		OpenFiles:    251,
		Processes:    12347,
		FileSize:     77777,
		Stack:        7*tool.MiB + 16,
		Core:         4097,
		CPUTime:      3607 * time.Second,
		AddressSpace: 5*tool.GiB + 24,
	}
	want := map[string]string{
		"data size": "537919496", "open files": "251", "processes": "12347", "file size": "77777",
		"stack size": "7340048", "core file size": "4097", "cpu time": "3607", "address space": "5368709144",
	}
	got, _ := inspected(t, p)
	for _, of := range []struct{ who, text string }{{"program", got.Limits}, {"its child", got.ChildLimits}} {
		for name, value := range want {
			soft, hard := readLimit(t, of.text, name)
			if soft != value || hard != value {
				t.Errorf("%s: %s = %s, %s, want %s", of.who, name, soft, hard, value)
			}
		}
	}
}

func TestZeroLimitsLeaveTheHosts(t *testing.T) {
	got, _ := inspected(t, profile(t, "inspect"))
	own, err := os.ReadFile("/proc/thread-self/limits")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"data size", "processes", "file size", "stack size", "cpu time", "address space"} {
		wantSoft, wantHard := readLimit(t, string(own), name)
		if soft, hard := readLimit(t, got.Limits, name); soft != wantSoft || hard != wantHard {
			t.Errorf("%s = %s, %s, want the host's %s, %s", name, soft, hard, wantSoft, wantHard)
		}
	}
	if soft, hard := readLimit(t, got.Limits, "core file size"); soft != "0" || hard != "0" {
		t.Errorf("core file size = %s, %s, want 0", soft, hard)
	}
}

// readLimit finds a limit in the text of /proc/PID/limits.
func readLimit(t *testing.T, text, name string) (soft, hard string) {
	t.Helper()
	m := regexp.MustCompile(`Max ` + name + `\s+(\S+)\s+(\S+)`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no %q in\n%s", name, text)
	}
	return m[1], m[2]
}

// Each limit is exceeded, after the same program has shown that it succeeds
// without the limit.
func TestLimitsAreEnforced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "big")
	for _, tt := range []struct {
		name   string
		args   []string
		limits Limits
		stderr string         // part of its message; Go dies of lack of memory in several ways
		signal syscall.Signal // or how it dies
	}{
		{"memory", []string{"memory", "400000000"}, Limits{Memory: MinMemory}, "", 0},
		{"address space", []string{"memory", "4000000000"}, Limits{AddressSpace: 3 * tool.GiB}, "", 0},
		{"file size", []string{"file", file}, Limits{FileSize: 100}, "file too large", 0},
		{"open files", []string{"open"}, Limits{OpenFiles: 20}, "too many open files", 0},
		{"cpu time", []string{"cpu"}, Limits{CPUTime: time.Second}, "", unix.SIGKILL},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLauncher(t)
			args := tt.args
			if tt.name == "address space" {
				args = []string{"memory", "1"} // the real amount may not exist
			}
			if out := readAll(t, started(t, l, profile(t, args...))); out != "done\n" {
				t.Fatalf("control: stdout = %q", out)
			}
			p := profile(t, tt.args...)
			p.Limits = tt.limits
			proc := started(t, l, p)
			stderr, err := io.ReadAll(proc.Stderr)
			if err != nil {
				t.Fatal(err)
			}
			if out := readAll(t, proc); out != "" || !bytes.Contains(stderr, []byte(tt.stderr)) {
				t.Errorf("stdout = %q, stderr = %.200q, want %q", out, stderr, tt.stderr)
			}
			exit := proc.Exit()
			status, ok := exit.State.Sys().(syscall.WaitStatus)
			if !ok || exit.State.Success() || exit.Killed {
				t.Fatalf("Exit() = %+v, want a failure of its own", exit)
			}
			if tt.signal != 0 && status.Signal() != tt.signal {
				t.Errorf("state = %v, want %v", exit.State, tt.signal)
			}
		})
	}
}

// No limit is too small for the launcher to say what became of the program.
func TestTinyLimits(t *testing.T) {
	for _, limits := range []Limits{
		{Memory: 1},
		{AddressSpace: 1},
		{Stack: 1},
		{OpenFiles: 1},
		{FileSize: 1},
		{Processes: 1},
		{Memory: 1, OpenFiles: 1, Processes: 1, FileSize: 1, Stack: 1, CPUTime: time.Second, AddressSpace: 1},
	} {
		p := Profile{Binary: open(t, "/bin/true"), Path: "/bin/true", Limits: limits}
		proc, err := newLauncher(t).Launch(t.Context(), p)
		if errors.Is(err, errNoReport) {
			t.Errorf("%+v: %v", limits, err)
		}
		if err != nil {
			continue
		}
		if exit := proc.Exit(); exit.Killed {
			t.Errorf("%+v: Exit() = %+v", limits, exit)
		}
		proc.closeStdio()
	}
}

func TestLaunchScript(t *testing.T) {
	path := writeScript(t, "#!/bin/sh\necho script $*\n")
	p := Profile{Binary: open(t, path), Path: path, Args: []string{"a", "b"}}
	if out := readAll(t, started(t, newLauncher(t), p)); out != "script a b\n" {
		t.Errorf("stdout = %q", out)
	}
}

// TestScriptHasItsPath: the file that an interpreter reads has the script's own path at each
// level, and holds the script, although its descriptor is that of another mount.
func TestScriptHasItsPath(t *testing.T) {
	path := writeScript(t, "#!/bin/sh\nreadlink /proc/$$/fd/3\nhead -n 1 \"$(readlink /proc/$$/fd/3)\"\n")
	if err := os.Chmod(filepath.Dir(filepath.Dir(path)), 0o755); err != nil { // the program's user is another
		t.Fatal(err)
	}
	for _, level := range []Isolation{Basic, Isolated, Strict} {
		p := Profile{Binary: open(t, path), Path: path, Confinement: Confinement{Isolation: level, WarnOnMissing: true, Exec: []string{ExecSystem}}}
		if out, want := readAll(t, started(t, newLauncher(t), p)), path+"\n#!/bin/sh\n"; out != want {
			t.Errorf("%v: stdout = %q, want %q", level, out, want)
		}
	}
}

func TestLaunchRunsTheOpenedFile(t *testing.T) {
	path := writeScript(t, "#!/bin/sh\necho hashed\n")
	binary := open(t, path)
	if err := os.Rename(writeScript(t, "#!/bin/sh\necho swapped\n"), path); err != nil {
		t.Fatal(err)
	}
	l := newLauncher(t)
	if out := readAll(t, started(t, l, Profile{Binary: binary, Path: path})); out != "hashed\n" {
		t.Errorf("stdout = %q, want that of the file that was opened", out)
	}
	// The control: the path leads to the other one.
	if out := readAll(t, started(t, l, Profile{Binary: open(t, path), Path: path})); out != "swapped\n" {
		t.Errorf("control: stdout = %q", out)
	}
}

func writeScript(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	if err := testprogram.Write(path, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLaunchSaysWhyNot(t *testing.T) {
	foreign := make([]byte, 4096)
	copy(foreign, "\x7fELF\x02\x01\x01")
	machine, name := byte(183), "aarch64"
	if runtime.GOARCH == "arm64" {
		machine, name = 62, "x86_64"
	}
	foreign[16], foreign[18], foreign[20] = 2, machine, 1

	file := func(content string, mode os.FileMode) func(*testing.T, *Profile) {
		return func(t *testing.T, p *Profile) {
			t.Helper()
			path := writeScript(t, content)
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			p.Binary, p.Path = open(t, path), path
		}
	}
	for _, tt := range []struct {
		name  string
		spoil func(*testing.T, *Profile)
		want  string
		is    error
	}{
		{"no binary", func(_ *testing.T, p *Profile) { p.Binary = nil }, "no binary is open", nil},
		{"no path", func(_ *testing.T, p *Profile) { p.Path = "" }, "no path", nil},
		{"a directory", func(_ *testing.T, p *Profile) { p.Binary = open(t, t.TempDir()) }, "not a regular file but a directory", nil},
		{"a device", func(_ *testing.T, p *Profile) { p.Binary = open(t, os.DevNull) }, "not a regular file but a device", nil},
		{"not executable", file("#!/bin/sh\n", 0o644), "(mode -rw-r--r--); set its mode (chmod +x)", syscall.EACCES},
		{"another machine", file(string(foreign), 0o755), "wrong architecture: it was built for " + name + "); build it for linux/", syscall.ENOEXEC},
		{"a text", file("just a text that is long enough\n", 0o755), "neither an ELF program nor a script", syscall.ENOEXEC},
		{"empty", file("", 0o755), "it is empty", syscall.ENOEXEC},
		{"no interpreter", file("#!/no/such/python -u\n", 0o755), "it is a script for /no/such/python, which does not exist", syscall.ENOENT},
		{"a closed file", func(_ *testing.T, p *Profile) { p.Binary.Close() }, "file already closed", os.ErrClosed},
		{"relative directory", func(_ *testing.T, p *Profile) { p.Dir = "work" }, `the working directory "work" is not an absolute path`, nil},
		{"missing directory", func(_ *testing.T, p *Profile) { p.Dir = "/no/such" }, "enter the working directory /no/such", syscall.ENOENT},
		{"NUL in path", func(_ *testing.T, p *Profile) { p.Path = "a\x00b" }, "a path contains a NUL byte", nil},
		{"NUL in argument", func(_ *testing.T, p *Profile) { p.Args = []string{"", "\x00"} }, "argument 2 contains a NUL byte", nil},
		{"NUL in value", func(_ *testing.T, p *Profile) { p.Env = []string{"TOKEN=s\x00"} }, "variable TOKEN contains a NUL byte", nil},
		{"no variable", func(_ *testing.T, p *Profile) { p.Env = []string{"TOKEN"} }, `"TOKEN" is not NAME=value`, nil},
		{"no name", func(_ *testing.T, p *Profile) { p.Env = []string{"=x"} }, "is not NAME=value", nil},
		{"endless arguments", func(_ *testing.T, p *Profile) { p.Args = []string{strings.Repeat("x", launch.MaxOrder)} }, "more than a program can get", nil},
		{"long argument", func(_ *testing.T, p *Profile) { p.Args = []string{strings.Repeat("x", 1<<20)} }, "raise the limit stack", syscall.E2BIG},
		{"negative limit", func(_ *testing.T, p *Profile) { p.Limits.Stack = -1 }, "limit stack is negative", nil},
		{"half a second", func(_ *testing.T, p *Profile) { p.Limits.CPUTime = time.Second / 2 }, "cpu_time is 500ms, expected whole seconds", nil},
		{"more than root may have", func(_ *testing.T, p *Profile) { p.Limits.OpenFiles = 1 << 40 }, "set limit open_files to 1099511627776: the host itself is limited to", syscall.EPERM},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := profile(t, "inspect")
			tt.spoil(t, &p)
			proc, err := newLauncher(t).Launch(t.Context(), p)
			if err == nil {
				proc.Kill()
				t.Fatal("it was started")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %q, want %q", err, tt.want)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error = %q is not %v", err, tt.is)
			}
		})
	}
}

func TestLaunchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the caller has gone home")
	cancel(reason)
	if _, err := newLauncher(t).Launch(ctx, profile(t, "inspect")); !errors.Is(err, reason) {
		t.Errorf("error = %v, want %v", err, reason)
	}
}

func TestLauncherDies(t *testing.T) {
	p := profile(t, "inspect")
	plan := newPlan(&p, nil)
	order, err := plan.order().Encode()
	if err != nil {
		t.Fatal(err)
	}
	proc, talk, err := newLauncher(t).fork(t.Context(), plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer talk.close()
	defer proc.closeStdio()
	if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", proc.PID())); err != nil || string(env) != "GOMAXPROCS=1\x00" {
		t.Errorf("the launcher's environment = %q, %v, want its own", env, err)
	}
	if err := unix.Kill(proc.PID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := talk.run(order); !errors.Is(err, errNoReport) {
		t.Errorf("error = %v, want %v", err, errNoReport)
	}
}
