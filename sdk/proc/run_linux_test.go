package proc_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestOutputIsBounded(t *testing.T) {
	const lines, budget = 4 << 20, 64 << 10 // 64 MiB
	c := command("flood", fmt.Sprint(lines))
	c.MaxOutput = budget
	var streamed int64
	c.Output = func(s proc.Stream, data []byte) {
		if s != proc.Stdout {
			t.Errorf("%d bytes from %v", len(data), s)
		}
		streamed += int64(len(data))
	}
	got, err := proc.Run(t.Context(), c)
	if err != nil || got.ExitCode != 0 {
		t.Fatalf("Run() = %+v, %v", got, err)
	}
	out := got.Stdout
	if out.Total != 16*lines || streamed != out.Total || len(out.Head)+len(out.Tail) != budget || out.Omitted != out.Total-budget {
		t.Errorf("total %d, streamed %d, head %d, tail %d, omitted %d", out.Total, streamed, len(out.Head), len(out.Tail), out.Omitted)
	}
	if head := len(out.Head); head != budget*2/5 {
		t.Errorf("the head has %d bytes", head)
	}
	if first, last := fmt.Sprintf("%15d\n", 0), fmt.Sprintf("%15d\n", lines-1); !bytes.HasPrefix(out.Head, []byte(first)) || !bytes.HasSuffix(out.Tail, []byte(last)) {
		t.Errorf("head begins %q, tail ends %q", out.Head[:16], out.Tail[len(out.Tail)-16:])
	}
	if got.Stderr.Total != 0 || got.CPUTime == 0 || got.MaxRSS < tool.MiB || got.Duration <= 0 {
		t.Errorf("Run() = stderr %d bytes, CPU time %v, max RSS %v, duration %v", got.Stderr.Total, got.CPUTime, got.MaxRSS, got.Duration)
	}
}

func TestStreams(t *testing.T) {
	c := command("both")
	got, err := proc.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got.Stdout.String(), "out 0\nout 1\n") || !strings.HasPrefix(got.Stderr.String(), "err 0\nerr 1\n") {
		t.Errorf("stdout %q, stderr %q", got.Stdout, got.Stderr)
	}
	c.Merge = true
	got, err = proc.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got.Stdout.String(), "out 0\nerr 0\nout 1\nerr 1\n") || got.Stderr.Total != 0 {
		t.Errorf("merged: stdout %q, stderr %q", got.Stdout, got.Stderr)
	}
}

func TestStdin(t *testing.T) {
	c := command("cat")
	c.Stdin = bytes.Repeat([]byte("0123456789abcdef"), 64<<10) // more than fits into a pipe
	got, err := proc.Run(t.Context(), c)
	if err != nil || got.Stdout.Total != int64(len(c.Stdin)) {
		t.Errorf("cat of %d bytes: %d, %v", len(c.Stdin), got.Stdout.Total, err)
	}
	c.Args = []string{"count"} // does not read
	if got, err := proc.Run(t.Context(), c); err != nil || got.ExitCode != 0 {
		t.Errorf("Run() = %+v, %v", got, err)
	}

	c = command("cat")
	c.Stdin, c.OpenStdin = []byte("one\n"), true
	out := tap(t, &c)
	p, err := proc.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"two\n", "three\n"} {
		if _, err := io.WriteString(p.Stdin, line); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"one\n", "two\n", "three\n"} {
		if line, err := out.ReadString('\n'); err != nil || line != want {
			t.Errorf("read %q, %v, want %q", line, err, want)
		}
	}
	if err := errors.Join(p.Stdin.Close(), p.Stdin.Close()); err != nil {
		t.Error(err)
	}
	if got, err := p.Wait(); err != nil || got.ExitCode != 0 || got.Background {
		t.Errorf("Wait() = %+v, %v", got, err)
	}
	if _, err := p.Stdin.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Write() after the end = %v, want %v", err, os.ErrClosed)
	}
}

// TestDir checks that a result has the command's last directory and no other: not a child's,
// not a removed one, and none that the command forges with a descriptor or a signal.
func TestDir(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	odd, gone := filepath.Join(dir, "a\n\"\xff b"), filepath.Join(dir, "gone")
	for _, made := range []string{odd, gone} {
		if err := os.Mkdir(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"count"}, dir},
		{[]string{"cd", odd}, odd},
		{[]string{"cd", odd, "/usr"}, odd},
		{[]string{"cd", gone, "remove"}, ""},
	} {
		c := command(tt.args...)
		c.Dir = dir
		got, err := proc.Run(t.Context(), c)
		if err != nil || got.ExitCode != 0 || got.Dir != tt.want {
			t.Errorf("%q ends in %q (%d, %q), %v, want %q", tt.args, got.Dir, got.ExitCode, got.Stderr, err, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := command("leaf")
	c.Dir = odd
	out := tap(t, &c)
	p, err := proc.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	readPID(t, out)
	cancel()
	if got, err := p.Wait(); err != nil || !got.Canceled || got.Dir != odd {
		t.Errorf("a command that was killed ends in %q, %v, want %q", got.Dir, err, odd)
	}
}

func TestSignal(t *testing.T) {
	c := command("leaf")
	out := tap(t, &c)
	p, err := proc.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	readPID(t, out)
	if err := p.Signal(0); err == nil {
		t.Error("signal 0 is sent")
	}
	if err := p.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	got, err := p.Wait()
	if err != nil || got.ExitCode != -1 || got.Signal != unix.SIGTERM || got.TimedOut || got.Canceled || got.Killed {
		t.Errorf("Wait() = %+v, %v", got, err)
	}
}

func TestTerminal(t *testing.T) {
	ours, theirs := openTerminal(t)
	c := command("terminal")
	c.Terminal = theirs
	p, err := proc.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(ours, "hello\n"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(ours)
	for _, want := range []string{"hello\r\n", "read \"hello\\n\"\r\n"} { // the first is the terminal's echo
		if line, err := lines.ReadString('\n'); err != nil || line != want {
			t.Errorf("read %q, %v, want %q", line, err, want)
		}
	}
	leaf := watch(t, readPID(t, lines))
	if _, err := io.WriteString(ours, "end\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Wait(); err != nil || got.ExitCode != 0 || !got.Background || !leaf.gone(0) {
		t.Errorf("Wait() = %+v, %v, want the leaf killed", got, err)
	}
	if _, err := io.WriteString(theirs, "still open\n"); err != nil {
		t.Error(err)
	}

	c.OpenStdin = true
	if _, err := proc.Start(t.Context(), c); tool.AsError(err).Code != tool.InvalidArgument {
		t.Errorf("Start() with a terminal and input = %v", err)
	}
	c.OpenStdin = false
	if c.Terminal, err = os.Open("/dev/null"); err != nil {
		t.Fatal(err)
	}
	defer c.Terminal.Close()
	if _, err := proc.Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), "make /dev/null the controlling terminal") {
		t.Errorf("Start() with /dev/null as terminal = %v", err)
	}
}

// TestOpenTerminal checks that a terminal has the requested size, and that invalid sizes are
// refused.
func TestOpenTerminal(t *testing.T) {
	_, theirs := openTerminal(t)
	got, err := unix.IoctlGetWinsize(int(theirs.Fd()), unix.TIOCGWINSZ)
	if err != nil || got.Row != 30 || got.Col != 90 {
		t.Errorf("the size is %+v, %v", got, err)
	}
	for _, size := range [][2]int{{0, 80}, {24, 0}, {1 << 16, 80}, {24, 1 << 16}} {
		if _, _, err := proc.OpenTerminal(size[0], size[1]); tool.AsError(err).Code != tool.InvalidArgument {
			t.Errorf("OpenTerminal%v = %v", size, err)
		}
	}
}

func openTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, theirs, err := proc.OpenTerminal(30, 90)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	t.Cleanup(func() { theirs.Close() })
	return ours, theirs
}

// TestFiles checks that a command has its further files as descriptors 3, 4 and so on, and no
// others.
func TestFiles(t *testing.T) {
	in, inEnd := pipe(t)
	outEnd, out := pipe(t)
	last, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	if _, err := io.WriteString(inEnd, "hello\n"); err != nil {
		t.Fatal(err)
	}
	c := proc.Command{
		Path:  "sh",
		Args:  []string{"-c", `read -r line <&3; echo "got $line" >&4; echo more >&5; echo /proc/$$/fd/*`},
		Files: []*os.File{in, out, last},
	}
	p, err := proc.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	// Only the command has the other ends open, so a reader reaches the end.
	if err := errors.Join(in.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(outEnd); err != nil || string(got) != "got hello\n" {
		t.Errorf("descriptor 4 has got %q, %v", got, err)
	}
	got, err := p.Wait()
	if err != nil || got.ExitCode != 0 {
		t.Fatalf("Wait() = %+v, %v", got, err)
	}
	var open []string
	for path := range strings.FieldsSeq(got.Stdout.String()) {
		open = append(open, filepath.Base(path))
	}
	slices.Sort(open)
	// The shell has opened the directory to list it.
	if want := []string{"0", "1", "2", "3", "4", "5", "6"}; !slices.Equal(open, want) && !slices.Equal(open, want[:6]) {
		t.Errorf("the command has the descriptors %v, want %v", open, want)
	}
	if text, err := os.ReadFile(last.Name()); err != nil || string(text) != "more\n" {
		t.Errorf("descriptor 5 has got %q, %v", text, err)
	}
}

// TestMostFiles gives a command the maximum number of files.
func TestMostFiles(t *testing.T) {
	_, end := pipe(t)
	c := proc.Command{
		Path: "sh", Args: []string{"-c", fmt.Sprintf("test -e /proc/$$/fd/%d", 2+proc.MaxFiles)}, Files: slices.Repeat([]*os.File{end}, proc.MaxFiles),
	}
	if got, err := proc.Run(t.Context(), c); err != nil || got.ExitCode != 0 {
		t.Errorf("Run() = %+v, %v", got, err)
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func TestContextHasEndedBefore(t *testing.T) {
	cause := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	name := filepath.Join(t.TempDir(), "file")
	if _, err := proc.Run(ctx, command("write", name)); !errors.Is(err, cause) {
		t.Errorf("Run() = %v, want %v", err, cause)
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("the command has run")
	}
}

func TestManyAtOnce(t *testing.T) {
	const commands = 200
	// Opens Go's own descriptors.
	if _, err := proc.Run(t.Context(), command("count")); err != nil {
		t.Fatal(err)
	}
	proc.DropReapers()
	before := openDescriptors(t)
	var all sync.WaitGroup
	for i := range commands {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%4 == 0 {
				go cancel() // before, during or after the start
			}
			want := fmt.Sprintf("1 %d\n", i)
			got, err := proc.Run(ctx, command("count", strings.Repeat("x", i)))
			switch {
			case i%4 == 0 && (errors.Is(err, context.Canceled) || got.Canceled):
			case err != nil || got.ExitCode != 0 || got.Stdout.String() != want || got.Strays != 0:
				t.Errorf("Run() = %+v, %v, want %q", got, err, want)
			}
		})
	}
	all.Wait()
	// The last reapers are about to end.
	for deadline := time.Now().Add(patience); openDescriptors(t) > before; proc.DropReapers() {
		if time.Now().After(deadline) {
			t.Fatalf("%d descriptors are open, %d before", openDescriptors(t), before)
		}
	}
}

// TestSpareReaperKilled kills the reaper that waits for a command: the next command gets
// another, even if the end has not been noticed yet.
func TestSpareReaperKilled(t *testing.T) {
	for range 20 {
		if _, err := proc.Run(t.Context(), command("count")); err != nil {
			t.Fatal(err)
		}
		pid := proc.SpareReaper()
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(patience); unix.Kill(pid, 0) == nil; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("the reaper %d is still there", pid)
			}
		}
		if got, err := proc.Run(t.Context(), command("count")); err != nil || got.ExitCode != 0 {
			t.Fatalf("Run() = %+v, %v", got, err)
		}
	}
}

// TestReaperRunsTheNextCommand checks that a reaper runs one command after another, unless
// something of the last one is left, and that no command has an effect on the next.
func TestReaperRunsTheNextCommand(t *testing.T) {
	run := func(change func(*proc.Command), args ...string) proc.Result {
		t.Helper()
		c := command(args...)
		c.Rules = &proc.Rules{Read: []string{"/"}, Write: []string{"/"}, Execute: []string{"/"}}
		change(&c)
		got, err := proc.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	plain := func(*proc.Command) {}
	proc.DropReapers()
	run(plain, "count")
	reaper := proc.SpareReaper()
	large := run(plain, "fill memory")
	if first, second := run(plain, "mask").Stdout.String(), run(plain, "mask").Stdout.String(); first != second || first == "" {
		t.Errorf("the umask is %q, then %q", first, second)
	}
	small := run(func(c *proc.Command) {
		c.Rules = &proc.Rules{Read: []string{"/"}, Execute: []string{"/"}, Optional: true}
	}, "count")
	if small.MaxRSS > large.MaxRSS/2 || small.CPUTime > large.CPUTime {
		t.Errorf("a small command uses %v and %v, a large one %v and %v", small.MaxRSS, small.CPUTime, large.MaxRSS, large.CPUTime)
	}
	if got := run(plain, "cd", "/"); got.Dir != "/" {
		t.Errorf("the directory is %s", got.Dir)
	}
	dir := t.TempDir()
	if got := run(func(c *proc.Command) { c.Dir = dir }, "count"); got.Dir != dir {
		t.Errorf("the directory is %s, want %s", got.Dir, dir)
	}
	if now := proc.SpareReaper(); now != reaper || now == 0 {
		t.Errorf("the reaper %d has followed %d", now, reaper)
	}
	for _, args := range [][]string{{"parent", "session"}, {"signaled"}, {"root"}} {
		if args[0] == "root" && os.Geteuid() != 0 {
			continue // it may not change its root directory
		}
		c := command(args...)
		c.Rules = &proc.Rules{Read: []string{"/"}, Write: []string{"/"}, Execute: []string{"/"}}
		c.OpenStdin = args[0] == "signaled"
		if c.OpenStdin {
			c.Args = []string{"cat"}
		}
		p, err := proc.Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if c.OpenStdin {
			if err := errors.Join(p.Signal(unix.SIGCONT), p.Stdin.Close()); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := p.Wait(); err != nil || got.ExitCode != 0 {
			t.Fatalf("%q: %+v, %v", args, got, err)
		}
		now := proc.SpareReaper()
		if now == reaper || now == 0 {
			t.Errorf("%q: the reaper %d waits after %d", args, now, reaper)
		}
		reaper = now
	}
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// TestForgedReport has a command without rules report its own end, in its reaper's name.
func TestForgedReport(t *testing.T) {
	proc.DropReapers()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	forge := proc.Command{Path: "/bin/sh", Args: []string{"-c", `for fd in /proc/$PPID/fd/*; do echo 'ended 0 0 0 true "/"' > $fd; done; exec sleep 1`}}
	if _, err := proc.Run(ctx, forge); err != nil {
		t.Fatal(err)
	}
	got, err := proc.Run(ctx, command("count"))
	if err != nil || got.ExitCode != 0 {
		t.Errorf("the next command ended with %d (%v)", got.ExitCode, err)
	}
}
