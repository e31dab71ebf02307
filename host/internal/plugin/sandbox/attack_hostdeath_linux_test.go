package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hostDeathAttacks live on after their host was killed.
func hostDeathAttacks() []attack {
	outlives := func(how string, honest bool) func(*scene) attempt {
		return func(s *scene) attempt {
			l := s.newLine()
			guarded := true
			return attempt{
				program: []string{"cling", how, l.ask.Name(), l.answers.Name()},
				launch: func(t *testing.T, p Profile, drop []Layer) string {
					t.Helper()
					guarded = p.Confinement.Isolation != Off
					killHost(t, p, drop, honest)
					return ""
				},
				happened: func(t *testing.T, _ string) bool {
					t.Helper()
					return (!guarded || !l.dies(t)) && l.alive(t)
				},
			}
		}
	}
	return []attack{
		{name: "outlive a killed host by a signal that it does not want (`PR_SET_PDEATHSIG`)", root: all, by: "`reaper`", stage: outlives("signal", false)},
		{name: "outlive a killed host by executing itself from another thread", root: all, by: "`reaper`", stage: outlives("thread", false)},
		{name: "outlive a killed host by a child", root: all, by: "`reaper`", rootOnly: "without a control group, the reaper and the kernel's signal race", stage: outlives("child", true)},
	}
}

// line is how a process of the plugin is asked whether it lives.
type line struct{ ask, answers *os.File }

// newLine creates a line that the plugin may use.
func (s *scene) newLine() line {
	s.t.Helper()
	open := func(name string, flags int) *os.File {
		path := s.workspace + "/" + name
		must(s.t, unix.Mkfifo(path, 0o666))
		must(s.t, unix.Chmod(path, 0o666))
		f, err := os.OpenFile(path, flags, 0)
		must(s.t, err)
		s.t.Cleanup(func() { f.Close() })
		return f
	}
	// This process holds both ends of questions, so asking never blocks. It holds one end of
	// answers: they end when no process is left that could answer.
	return line{open("questions", os.O_RDWR), open("answers", os.O_RDONLY|unix.O_NONBLOCK)}
}

// alive asks a process, which then ends.
func (l line) alive(t *testing.T) bool {
	t.Helper()
	_, err := l.ask.WriteString("are you there?\n")
	must(t, err)
	answer, err := io.ReadAll(l.answers)
	must(t, err)
	return string(answer) == "alive\n"
}

// dies waits until no process is left that could answer: the reaper needs a moment.
func (l line) dies(t *testing.T) bool {
	t.Helper()
	must(t, l.answers.SetReadDeadline(time.Now().Add(patience)))
	defer func() { must(t, l.answers.SetReadDeadline(time.Time{})) }()
	_, err := l.answers.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// hostOrder is what the host starts before it is killed.
type hostOrder struct {
	Profile Profile
	Drop    []Layer
}

// killHost has another host start the program and kills that host. An honest
// program ends, and only its children may live.
func killHost(t *testing.T, p Profile, drop []Layer, honest bool) {
	t.Helper()
	p.Binary = nil
	order, err := json.Marshal(hostOrder{p, drop})
	must(t, err)
	host := exec.Command("/proc/self/exe", "attack", "host", string(order))
	stdin, err := host.StdinPipe()
	must(t, err)
	defer stdin.Close()
	stdout, err := host.StdoutPipe()
	must(t, err)
	host.Stderr = os.Stderr
	if p.Confinement.Isolation == Off { // the control: there is a reaper at every level
		host.Env = append(os.Environ(), "WITHOUT_REAPER=1")
	}
	must(t, host.Start())
	if pipe, ok := stdout.(*os.File); ok { // a program that ends before it says its id must not hold the test
		must(t, pipe.SetReadDeadline(time.Now().Add(patience)))
	}
	lines := bufio.NewReader(stdout)
	program := watch(t, readPID(t, lines))
	readPID(t, lines) // about the processes that will answer, in its own namespace
	must(t, host.Process.Kill())
	_ = host.Wait() // it was killed
	// When a process has been reaped, the signals of its death have been sent: the processes
	// that they kill answer no more.
	if honest && !program.gone(patience) {
		t.Error("the program has outlived its host")
	}
}

// hostDeathPrograms are the programs of hostDeathAttacks.
func hostDeathPrograms() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"host": func(args []string) error { return beHost(context.Background(), args[0]) },
		"cling": func(args []string) error {
			again := append([]string{"attack", "answer"}, args[1:]...)
			switch args[0] {
			case "signal":
				if err := withoutSignal(again...); err != nil {
					fmt.Fprintln(os.Stderr, err) // it keeps running, and dies
				}
				return answer(args[1:])
			case "thread":
				return onOtherThread(func() error {
					return syscall.Exec("/proc/self/exe", append([]string{"test"}, again...), os.Environ())
				})
			case "child":
				cmd := exec.Command("/proc/self/exe", again...)
				cmd.Stdout = os.Stdout
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
				if err := cmd.Start(); err != nil {
					return err
				}
				return untilKilled()
			}
			return fmt.Errorf("cling %q", args[0])
		},
	}
}

func beHost(ctx context.Context, text string) error {
	var order hostOrder
	if err := json.Unmarshal([]byte(text), &order); err != nil {
		return err
	}
	binary, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	order.Profile.Binary = binary
	l, err := NewLauncher()
	if err != nil {
		return err
	}
	if os.Getenv("WITHOUT_REAPER") != "" {
		l.leavePrograms()
	}
	proc, err := l.launchWithout(ctx, &order.Profile, order.Drop)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, proc.PID())
	_, err = io.Copy(os.Stdout, proc.Stdout)
	return errors.Join(err, untilKilled())
}

// onOtherThread runs f on a thread that is not the first of the process.
func onOtherThread(f func() error) error {
	result := make(chan error, 1)
	go func() { // ends with f
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			result <- onOtherThread(f)
			return
		}
		result <- f()
	}()
	return <-result
}

// launchWithout starts a program with all layers but some.
func (l *Launcher) launchWithout(ctx context.Context, p *Profile, drop []Layer) (*Process, error) {
	pl := newPlan(p, nil)
	for _, layer := range drop {
		for pl.drop(Gap{Layer: layer, Reason: "left out"}) {
			continue
		}
	}
	proc, err := l.try(ctx, pl, false)
	if gap, ok := pl.gap(err); err != nil && ok && gap.Layer == LayerCgroup && pl.drop(gap) {
		return l.try(ctx, pl, false) // hardly a machine of tests has them
	}
	return proc, err
}
