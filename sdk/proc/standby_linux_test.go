package proc_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// standBy sends its process id over its socket, waits for the files of its command, and copies
// its input, with its limit of open files.
func standBy([]string) error {
	const socket = 3
	if _, err := fmt.Fprintln(os.NewFile(socket, "socket"), os.Getpid()); err != nil {
		return err
	}
	oob := make([]byte, unix.CmsgSpace(4*4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), oob, 0)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return fmt.Errorf("messages %v, %w", messages, err)
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(files) != 4 {
		return fmt.Errorf("files %v, %w", files, err)
	}
	var limit unix.Rlimit
	for to, fd := range files[:3] {
		err = errors.Join(err, unix.Dup3(fd, to, 0), unix.Close(fd))
	}
	if err = errors.Join(err, unix.Fchdir(files[3]), unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)); err != nil {
		return err
	}
	input, err := io.ReadAll(os.Stdin)
	fmt.Fprintf(os.Stdout, "%s, %d files\n", input, limit.Max)
	return err
}

// newStandby starts standBy and waits until it runs.
func newStandby(t *testing.T) (s *proc.Standby, socket *os.File, pid int) {
	t.Helper()
	s, socket, err := proc.NewStandby(standbyCommand())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	if _, err := fmt.Fscanln(socket, &pid); err != nil {
		t.Fatalf("it does not run before its command: %v", err)
	}
	return s, socket, pid
}

func standbyCommand() proc.Command {
	c := command("stand by")
	c.Limits.OpenFiles = 77
	return c
}

// handOver passes a standby its files.
func handOver(socket *os.File) func([4]*os.File) error {
	return func(files [4]*os.File) error {
		rights := unix.UnixRights(int(files[0].Fd()), int(files[1].Fd()), int(files[2].Fd()), int(files[3].Fd()))
		return unix.Sendmsg(int(socket.Fd()), []byte{0}, rights, nil, unix.MSG_NOSIGNAL)
	}
}

// TestStandby checks that a waiting program runs the next command, even if it was stopped in
// the meantime.
func TestStandby(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{false, true} {
		s, socket, pid := newStandby(t)
		if stopped {
			if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Start(t.Context(), proc.Command{Dir: dir, Stdin: []byte("hello")}, handOver(socket))
		if err != nil {
			t.Fatal(err)
		}
		result, err := p.Wait()
		if got := result.Stdout.String(); err != nil || got != "hello, 77 files\n" || result.Dir != dir || result.ExitCode != 0 {
			t.Errorf("stopped %t: wrote %q and %q, ended in %s with %d, %v, want to copy and to end in %s",
				stopped, got, result.Stderr.String(), result.Dir, result.ExitCode, err, dir)
		}
	}
}

// TestStandbyFits checks that a program fits commands with its program, limits and rules,
// whatever else they have.
func TestStandbyFits(t *testing.T) {
	t.Parallel()
	s, _, _ := newStandby(t)
	defer s.Close()
	for name, tt := range map[string]struct {
		change func(*proc.Command)
		want   bool
	}{
		"directory": {func(c *proc.Command) { c.Dir, c.Env, c.Stdin = "/tmp", []string{"A=b"}, []byte("x") }, true},
		"arguments": {func(c *proc.Command) { c.Args = []string{"stand by", "x"} }, false},
		"limits":    {func(c *proc.Command) { c.Limits.OpenFiles++ }, false},
		"no limit":  {func(c *proc.Command) { c.Limits = proc.Limits{} }, false},
		"rules":     {func(c *proc.Command) { c.Rules = &proc.Rules{Read: []string{"/"}, Optional: true} }, false},
	} {
		c := standbyCommand()
		tt.change(&c)
		if got := s.Fits(c); got != tt.want {
			t.Errorf("another %s: fits %t, want %t", name, got, tt.want)
		}
	}
}

// TestStandbyEnds checks that a program ends with Close, and with a failed start, whose error
// says why.
func TestStandbyEnds(t *testing.T) {
	t.Parallel()
	gone := func(socket *os.File, pid int) {
		t.Helper()
		if n, err := socket.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("its socket gives %d bytes, %v, want its end", n, err)
		}
		if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
			t.Errorf("process %d: %v, want that there is none", pid, err)
		}
	}
	s, socket, pid := newStandby(t)
	s.Close()
	gone(socket, pid)

	s, socket, pid = newStandby(t)
	_, err := s.Start(t.Context(), proc.Command{Dir: "/no/such"}, handOver(socket))
	if e := tool.AsError(err); e.Code != tool.NotFound || !strings.Contains(e.Message, "/no/such") {
		t.Errorf("a directory that is not there: %v", err)
	}
	gone(socket, pid)

	s, socket, pid = newStandby(t)
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := socket.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if _, err := s.Start(t.Context(), proc.Command{}, handOver(socket)); !errors.Is(err, unix.EPIPE) {
		t.Errorf("a program that was killed: %v, want that it cannot be handed files", err)
	}
	gone(socket, pid)

	s, socket, err = proc.NewStandby(proc.Command{Path: "/no/such"})
	if err == nil {
		defer socket.Close()
		_, err = s.Start(t.Context(), proc.Command{}, func([4]*os.File) error { return nil })
	}
	if e := tool.AsError(err); e.Code != tool.NotFound {
		t.Errorf("a program that is not there: %v", err)
	}
}
