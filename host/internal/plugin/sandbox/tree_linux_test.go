package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

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

// gone says whether the process ends within d.
func (h handle) gone(d time.Duration) bool {
	for {
		fds := []unix.PollFd{{Fd: int32(h), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(d.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return n == 1
		}
	}
}

// leafKinds are the ways in which a parent starts a leaf: as a child, in its own session, as a
// daemon whose parents are gone, and outside the program's tree.
var leafKinds = []string{"child", "session", "daemon", "adopted"}

func TestProcessLeavesNothing(t *testing.T) {
	for _, kind := range leafKinds {
		for _, end := range []struct {
			name   string
			by     func(*Process)
			killed bool
		}{
			{"kill", (*Process).Kill, true},
			{"own end", func(p *Process) { p.Stdin.Close() }, false},
			{"killed by another", func(p *Process) { _ = unix.Kill(p.PID(), unix.SIGKILL) }, false},
			{"killed while stopped", func(p *Process) {
				_ = unix.Kill(p.PID(), unix.SIGSTOP)
				_ = unix.Waitid(unix.P_PID, p.PID(), nil, unix.WSTOPPED|unix.WNOWAIT, nil)
				p.Kill()
				p.Kill()
			}, true},
		} {
			t.Run(kind+"/"+end.name, func(t *testing.T) {
				proc := started(t, newLauncher(t), profile(t, "parent", kind))
				leaf := watch(t, readPID(t, bufio.NewReader(proc.Stdout)))

				end.by(proc)
				// The leaf holds it open and never closes it.
				if _, err := io.ReadAll(proc.Stdout); err != nil {
					t.Errorf("read stdout to its end: %v", err)
				}
				exit := proc.Exit()
				if !leaf.gone(0) {
					t.Error("Done is closed, and the leaf lives")
				}
				if exit.Killed != end.killed || exit.Survivors != 0 {
					t.Errorf("Exit() = %+v, want killed %v", exit, end.killed)
				}
				if !end.killed && exit.Strays == 0 {
					t.Error("no strays, want the leaf")
				}
				if err := proc.Signal(unix.SIGQUIT); !errors.Is(err, os.ErrProcessDone) {
					t.Errorf("Signal() = %v, want %v", err, os.ErrProcessDone)
				}
				proc.Kill() // nothing happens
			})
		}
	}
}

// The control for the test above: killing only the process group leaves processes that have left
// the group and hold standard output open.
func TestControlGroupKillLeavesSomething(t *testing.T) {
	for _, kind := range leafKinds[1:] {
		t.Run(kind, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			cmd := exec.Command("/proc/self/exe", "parent", kind)
			cmd.Stdout = w
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
			if err := unix.Kill(-cmd.Process.Pid, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // its error is the signal
			if leaf.gone(0) {
				t.Error("the leaf is gone")
			}
			conn, err := r.SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			var n int
			if controlErr := conn.Control(func(fd uintptr) { n, err = unix.Read(int(fd), make([]byte, 1)) }); controlErr != nil {
				t.Fatal(controlErr)
			}
			if !errors.Is(err, unix.EAGAIN) {
				t.Errorf("stdout: read %d bytes, %v, want it open and empty", n, err)
			}
		})
	}
}

// A program's end must not touch what others have started, even if it is
// adopted by this process, as a program's orphans are.
func TestSweepSparesOthers(t *testing.T) {
	l, other := newLauncher(t), newLauncher(t)
	dying := started(t, l, profile(t, "parent", "session"))
	readPID(t, bufio.NewReader(dying.Stdout))

	sibling := started(t, l, profile(t, "leaf"))
	stranger := started(t, other, profile(t, "leaf"))
	siblingLives := watch(t, readPID(t, bufio.NewReader(sibling.Stdout)))
	strangerLives := watch(t, readPID(t, bufio.NewReader(stranger.Stdout)))
	cmd := exec.Command("/proc/self/exe", "parent", "session")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil { // its input ends at once, and so does it
		t.Fatal(err)
	}
	adopted := watch(t, readPID(t, bufio.NewReader(out)))
	_ = cmd.Wait() // it closes the pipe that the leaf writes to

	dying.Kill()
	if exit := dying.Exit(); exit.Survivors != 0 {
		t.Errorf("Exit() = %+v", exit)
	}
	for name, h := range map[string]handle{"sibling": siblingLives, "other launcher's": strangerLives, "adopted": adopted} {
		if h.gone(0) {
			t.Errorf("the %s process is gone", name)
		}
	}
}

func TestStdoutEndsThoughSomethingHoldsIt(t *testing.T) {
	proc := started(t, newLauncher(t), profile(t, "leaf"))
	readPID(t, bufio.NewReader(proc.Stdout))
	held, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", proc.PID()), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if _, err := held.WriteString("last words"); err != nil {
		t.Fatal(err)
	}
	proc.Kill()
	if out := readAll(t, proc); out != "last words" {
		t.Errorf("stdout = %q", out)
	}
}

func TestStdoutKeepsWhatTheDeadWrote(t *testing.T) {
	proc := started(t, newLauncher(t), profile(t, "flood"))
	<-proc.Done()
	if out := readAll(t, proc); len(out) != 200<<10 {
		t.Errorf("stdout holds %d bytes, want all %d", len(out), 200<<10)
	}
	stderr, err := io.ReadAll(proc.Stderr)
	if err != nil || string(stderr) != "flooded\n" {
		t.Errorf("stderr = %q, %v", stderr, err)
	}
}

func TestSignalDumpsGoroutines(t *testing.T) {
	proc := started(t, newLauncher(t), profile(t, "leaf"))
	readPID(t, bufio.NewReader(proc.Stdout))
	if err := proc.Signal(unix.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	stderr, err := io.ReadAll(proc.Stderr)
	if err != nil || len(stderr) == 0 {
		t.Errorf("stderr = %q, %v, want goroutines", stderr, err)
	}
}

func TestCloseKillsEverything(t *testing.T) {
	l := newLauncher(t)
	var leaves []handle
	for range 5 {
		proc := started(t, l, profile(t, "parent", "daemon"))
		leaves = append(leaves, watch(t, proc.PID()), watch(t, readPID(t, bufio.NewReader(proc.Stdout))))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, leaf := range leaves {
		if !leaf.gone(0) {
			t.Error("a process lives after Close")
		}
	}
	if _, err := l.Launch(t.Context(), profile(t, "leaf")); !errors.Is(err, errLauncherClosed) {
		t.Errorf("Launch after Close: %v, want %v", err, errLauncherClosed)
	}
	if err := l.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestManyLaunchesLeakNothing(t *testing.T) {
	const launches, atOnce = 200, 25
	ignore := goleak.IgnoreCurrent()
	binary := open(t, "/bin/true")
	before := openDescriptors(t)

	l, err := NewLauncher()
	if err != nil {
		t.Fatal(err)
	}
	numbers := make(chan int)
	var launching sync.WaitGroup
	for range atOnce {
		launching.Go(func() { // ends with numbers
			for i := range numbers {
				if err := launchTrue(t.Context(), l, binary, i%4 == 0); err != nil {
					t.Errorf("launch %d: %v", i, err)
				}
			}
		})
	}
	for i := range launches {
		numbers <- i
	}
	close(numbers)
	launching.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if after := openDescriptors(t); after != before {
		t.Errorf("%d descriptors are open, %d before", after, before)
	}
	goleak.VerifyNone(t, ignore)
}

// launchTrue launches a program that only succeeds, and waits for its end. One that
// is canceled may be so before, while or after it starts.
func launchTrue(ctx context.Context, l *Launcher, binary *os.File, canceled bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if canceled {
		go cancel()
	}
	proc, err := l.Launch(ctx, Profile{Binary: binary, Path: "/bin/true"})
	if canceled && errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return err
	}
	defer proc.closeStdio()
	if state := proc.Exit().State; !state.Success() {
		return errors.New(state.String())
	}
	return nil
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// The host is killed while its program is in each of its phases.
func TestProgramDiesWithItsHost(t *testing.T) {
	for _, phase := range []string{"launching", "leaf", "stop"} {
		t.Run(phase, func(t *testing.T) {
			killHost, pid := startHost(t, phase)
			program := watch(t, pid)
			killHost()
			if !program.gone(patience) {
				t.Error("the program lives on")
			}
		})
	}
}

// TestProgramWithoutItsSignalDiesWithItsHost is a program that has removed its
// parent-death signal: the reaper kills it.
func TestProgramWithoutItsSignalDiesWithItsHost(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	fifo, err := os.OpenFile(name, os.O_RDWR, 0) // so that no write waits for a reader
	if err != nil {
		t.Fatal(err)
	}
	defer fifo.Close()
	killHost, pid := startHost(t, "ignore", name)
	program := watch(t, pid)
	killHost()
	if !program.gone(patience) {
		t.Error("the program lives on")
	}
}

// TestReaperIsReplaced kills the reaper, and then the host.
func TestReaperIsReplaced(t *testing.T) {
	l := newLauncher(t)
	proc := started(t, l, profile(t, "stop"))
	first := l.reaperProcess()
	if err := unix.Kill(first, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for l.reaperProcess() == first || l.reaperProcess() == 0 {
		runtime.Gosched()
	}
	proc.Kill()
	<-proc.Done()
}

func (l *Launcher) reaperProcess() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reaper == nil {
		return 0
	}
	return l.reaper.process.Pid
}

// The control for the tests above: without a reaper, a program that has removed its parent-death
// signal keeps running.
func TestControlProgramOutlivesItsHost(t *testing.T) {
	t.Setenv("WITHOUT_REAPER", "1")
	name := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	fifo, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer fifo.Close()
	if err := fifo.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	killHost, pid := startHost(t, "ignore", name)
	watch(t, pid)
	killHost()
	if line, err := bufio.NewReader(fifo).ReadString('\n'); err != nil || line != "alive\n" {
		t.Errorf("the program said %q, %v", line, err)
	}
}

// startHost starts a process that launches the program args, and returns its
// end and the program's process id.
func startHost(t *testing.T, args ...string) (kill func(), pid int) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{"host"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid = readPID(t, bufio.NewReader(out))
	t.Cleanup(func() {
		// If this process adopts orphans, the program is one of them. The test has already
		// killed it.
		_, _ = unix.Wait4(pid, nil, 0, nil)
	})
	return func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // its error is the signal
	}, pid
}
