package proc_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/proc/internal/reaper"
)

// TestMain lets the test binary also act as the plugin that is killed, and as the commands:
// its first argument selects the program.
func TestMain(m *testing.M) {
	if os.Args[0] == reaper.Name {
		fmt.Fprintln(os.Stdout, "this is main")
		os.Exit(0)
	}
	if len(os.Args) > 1 {
		if act, ok := programs()[os.Args[1]]; ok {
			if err := act(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	goleak.VerifyTestMain(tests{m})
}

// tests leave no reaper behind.
type tests struct{ *testing.M }

func (t tests) Run() int {
	defer proc.DropReapers()
	return t.M.Run()
}

// programs are the programs that the test binary can act as.
func programs() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"parent":  parent,
		"leaf":    leaf,
		"hold":    hold,
		"plugin":  plugin,
		"plain":   plain,
		"rabbit":  rabbit,
		"inspect": inspect,
		"limited": limited,
		"flood":   flood,
		"execute": func(args []string) error { return syscall.Exec(args[0], args, nil) },
		"read": func(args []string) error {
			_, err := os.ReadFile(args[0])
			return err
		},
		// cd changes to a directory, may remove it, and has a child change to another.
		"cd": func(args []string) error {
			if err := unix.Chdir(args[0]); err != nil {
				return err
			}
			if len(args) > 1 && args[1] == "remove" {
				return os.Remove(args[0])
			}
			if len(args) > 1 {
				return exec.Command("/proc/self/exe", append([]string{"cd"}, args[1:]...)...).Run()
			}
			return nil
		},
		// polite ends at SIGTERM. Its child ends a little later, after some output.
		"polite": func(args []string) error {
			cmd := exec.Command("/proc/self/exe", append([]string{"last word"}, args...)...)
			cmd.Stdout = os.Stdout
			return cmd.Run()
		},
		"last word": func(args []string) error {
			term, parent := make(chan os.Signal, 1), os.Getppid()
			signal.Notify(term, unix.SIGTERM)
			fmt.Fprintln(os.Stdout, os.Getpid())
			<-term
			for os.Getppid() == parent {
				runtime.Gosched()
			}
			if len(args) > 0 {
				<-term // there is no second signal
			}
			fmt.Fprintln(os.Stdout, "bye")
			return nil
		},
		"stand by": standBy,
		"write":    func(args []string) error { return os.WriteFile(args[0], nil, 0o600) },
		"count": func(args []string) error {
			fmt.Fprintln(os.Stdout, len(args), len(strings.Join(args, "")))
			return nil
		},
		"terminal": func([]string) error {
			terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
			if err != nil {
				return err
			}
			lines := bufio.NewReader(terminal)
			line, err := lines.ReadString('\n')
			if err != nil {
				return err
			}
			fmt.Fprintf(terminal, "read %q\n", line)
			if err := startLeaf("session"); err != nil {
				return err
			}
			_, err = lines.ReadString('\n')
			return err
		},
		"fill memory": func([]string) error {
			memory := make([]byte, 128<<20)
			for i := range memory {
				memory[i] = byte(i)
			}
			runtime.KeepAlive(memory)
			return nil
		},
		"mask": func([]string) error {
			fmt.Fprintln(os.Stdout, unix.Umask(0o777))
			return nil
		},
		"root": func([]string) error { return unix.Chroot("/proc") },
		"cat": func([]string) error {
			_, err := io.Copy(os.Stdout, os.Stdin)
			return err
		},
		"both": func([]string) error {
			for i := range 50 {
				fmt.Fprintln(os.Stdout, "out", i)
				fmt.Fprintln(os.Stderr, "err", i)
			}
			return nil
		},
	}
}

// command returns a command that runs the test binary as one of programs.
func command(args ...string) proc.Command {
	return proc.Command{
		Path: "/proc/self/exe",
		Args: args,
		Env:  []string{"GORACE=atexit_sleep_ms=0"}, // a race detector would delay its exit by a second
	}
}

// parent starts a leaf as its argument says, and lives until its standard input ends.
func parent(args []string) error {
	if err := startLeaf(args[0]); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// startLeaf starts a process that prints its id and lives until it is killed.
func startLeaf(how string) error {
	cmd := exec.Command("/proc/self/exe", "leaf")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr // the leaf keeps them open
	switch how {
	case "child":
		return cmd.Start()
	case "session":
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return cmd.Start()
	case "daemon": // its parent has ended
		cmd = exec.Command("/proc/self/exe", "parent", "session")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return cmd.Run()
	case "deaf": // it and its parent ignore SIGTERM
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		return cmd.Start()
	case "stopped":
		cmd.Args = append(cmd.Args, "stop")
		return cmd.Start()
	case "adopter": // keeps its own orphans from the reaper
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return err
		}
		return startLeaf("daemon")
	case "reaper stopped":
		if err := unix.Kill(os.Getppid(), unix.SIGSTOP); err != nil {
			return err
		}
		return startLeaf("session")
	case "reaper held":
		if err := startLeaf("session"); err != nil {
			return err
		}
		for range 3 {
			cmd := exec.Command("/proc/self/exe", "hold", strconv.Itoa(os.Getppid()))
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := cmd.Start(); err != nil {
				return err
			}
		}
		return hold([]string{strconv.Itoa(os.Getppid())})
	case "reaper killed":
		if err := startLeaf("session"); err != nil {
			return err
		}
		if err := startLeaf("child"); err != nil {
			return err
		}
		_, err := bufio.NewReader(os.Stdin).ReadString('\n') // the leaves have printed their ids
		return errors.Join(err, unix.Kill(os.Getppid(), unix.SIGKILL), untilKilled())
	default:
		return fmt.Errorf("parent %q", how)
	}
}

// hold keeps a process stopped as long as it lives.
func hold(args []string) error {
	pid, err := strconv.Atoi(args[0])
	for err == nil {
		err = unix.Kill(pid, unix.SIGSTOP)
	}
	return err
}

func leaf(args []string) error {
	fmt.Fprintln(os.Stdout, os.Getpid())
	if len(args) > 0 {
		if err := unix.Kill(os.Getpid(), unix.SIGSTOP); err != nil {
			return err
		}
	}
	return untilKilled()
}

// untilKilled waits for the signal that ends the process. The signals with which Go preempts
// goroutines end a pause, too.
func untilKilled() error {
	for {
		if err := unix.Pause(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// plugin runs a command as a plugin would, and ends when its standard input does.
func plugin(args []string) error {
	c := command(args...)
	c.OpenStdin = true
	c.Output = func(_ proc.Stream, data []byte) { _, _ = os.Stdout.Write(data) }
	if _, err := proc.Start(context.Background(), c); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// plain does the same without this package.
func plain(args []string) error {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Stdout = os.Stdout
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// rabbit forever restarts itself and exits, so that only a faster killer can catch it.
func rabbit([]string) error {
	fmt.Fprintln(os.Stdout, os.Getpid())
	cmd := exec.Command("/proc/self/exe", "rabbit")
	cmd.Stdout = os.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

// flood writes numbered lines of 16 bytes.
func flood(args []string) error {
	lines, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(os.Stdout, 1<<16)
	for i := range lines {
		fmt.Fprintf(w, "%15d\n", i)
	}
	return w.Flush()
}

// patience bounds how long a test waits for an event.
const patience = 30 * time.Second

// handle identifies a process, so that a later one with the same pid is not mistaken for it.
type handle int

func watch(t *testing.T, pid int) handle {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("watch process %d: %v", pid, err)
	}
	t.Cleanup(func() {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		unix.Close(fd)
	})
	return handle(fd)
}

// gone reports whether the process ends within d.
func (h handle) gone(d time.Duration) bool {
	for {
		fds := []unix.PollFd{{Fd: int32(h), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(d.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return n == 1
		}
	}
}

// readPID reads a line with a process id.
func readPID(t *testing.T, r *bufio.Reader) int {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("read a process id: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// tap makes a command's output readable line by line.
func tap(t *testing.T, c *proc.Command) *bufio.Reader {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	c.Output = func(_ proc.Stream, data []byte) { _, _ = w.Write(data) }
	return bufio.NewReader(r)
}

// expiring is a context whose deadline passes when the test decides.
type expiring struct {
	context.Context //nolint:containedctx // it is one

	done chan struct{}
}

func newExpiring(t *testing.T) expiring {
	t.Helper()
	return expiring{t.Context(), make(chan struct{})}
}

func (e expiring) Done() <-chan struct{} { return e.done }

func (e expiring) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
