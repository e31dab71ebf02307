package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// programs are the programs that the test binary can become.
func programs() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"attack":  attackWith,
		"inspect": inspect,
		"limits":  func([]string) error { return printFile("/proc/self/limits") },
		"parent":  parent,
		"leaf":    leaf,
		"host":    host,
		"ignore":  func(args []string) error { return withoutSignal(append([]string{"survive"}, args...)...) },
		"survive": survive,
		"stop":    func([]string) error { return unix.Kill(os.Getpid(), unix.SIGSTOP) },
		"memory":  useMemory,
		"file":    writeFile,
		"cpu":     useCPU,
		"open":    openMany,
		"flood":   flood,
	}
}

// state is the program's view of itself.
type state struct {
	Args        []string
	Env         []string
	Dir         string
	Descriptors map[string]string
	Status      string
	Umask       int
	Session     int
	Subreaper   bool
	Limits      string
	ChildLimits string
}

func inspect([]string) error {
	s := state{Args: os.Args, Env: os.Environ(), Umask: unix.Umask(0), Descriptors: map[string]string{}}
	s.Dir, _ = os.Readlink("/proc/self/cwd")
	names, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return err
	}
	for _, name := range names {
		fd, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			return err
		}
		// Go marks the descriptors that it opens; inherited ones are not marked.
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags != 0 {
			continue
		}
		target, err := os.Readlink(name)
		if err != nil {
			return err
		}
		s.Descriptors[filepath.Base(name)], _, _ = strings.Cut(target, ":")
	}
	if s.Session, err = unix.Getsid(0); err != nil {
		return err
	}
	if s.Subreaper, err = isSubreaper(); err != nil {
		return err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	s.Status = string(status)
	limits, err := os.ReadFile("/proc/self/limits")
	if err != nil {
		return err
	}
	s.Limits = string(limits)
	child, err := exec.Command("/proc/self/exe", "limits").Output()
	if err != nil {
		return err
	}
	s.ChildLimits = string(child)
	return json.NewEncoder(os.Stdout).Encode(s)
}

func printFile(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

// parent starts a leaf in the way that its argument names and lives until its
// standard input ends.
func parent(args []string) error {
	if err := startLeaf(args[0]); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func startLeaf(how string) error {
	cmd := exec.Command("/proc/self/exe", "leaf")
	cmd.Stdout = os.Stdout
	switch how {
	case "child":
		return cmd.Start()
	case "session":
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return cmd.Start()
	case "adopted": // by the host, while the program lives
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0); err != nil {
			return err
		}
		return startLeaf("daemon")
	case "daemon": // its parent is gone, too
		cmd = exec.Command("/proc/self/exe", "parent", "session")
		cmd.Stdout = os.Stdout
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return cmd.Run()
	default:
		return fmt.Errorf("parent %q", how)
	}
}

// leaf says its process id and lives until it is killed.
func leaf([]string) error {
	fmt.Fprintln(os.Stdout, os.Getpid())
	return untilKilled()
}

// untilKilled waits for the signal that ends the process. Those with which Go's
// runtime preempts a goroutine end a pause, too.
func untilKilled() error {
	for {
		if err := unix.Pause(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// host is a host that gets killed: it starts a program, prints its process id
// and waits.
func host(args []string) error {
	l, err := NewLauncher()
	if err != nil {
		return err
	}
	if os.Getenv("WITHOUT_REAPER") != "" {
		l.leavePrograms()
	}
	binary, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	if args[0] == "launching" {
		// Without an order, the launcher stays one; when stopped, it does not
		// see that the host is gone.
		p, _, err := l.fork(context.Background(), newPlan(&Profile{Binary: binary, Confinement: off}, nil), nil)
		if err != nil {
			return err
		}
		if err := unix.Kill(p.PID(), unix.SIGSTOP); err != nil {
			return err
		}
		return awaitStop(p.PID())
	}
	p, err := l.Launch(context.Background(), Profile{Binary: binary, Path: "program", Args: args, Confinement: off})
	if err != nil {
		return err
	}
	if args[0] == "stop" {
		return awaitStop(p.PID())
	}
	// Its first line says that it runs, and is its process id.
	if _, err := io.Copy(os.Stdout, p.Stdout); err != nil {
		return err
	}
	return untilKilled()
}

// awaitStop prints the process id of a child that has been stopped, and waits
// to be killed.
func awaitStop(pid int) error {
	if err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, pid)
	return untilKilled()
}

// leavePrograms makes a launcher whose programs nothing but their parent-death signal kills: no
// reaper, and no control group, which the next launcher would empty.
func (l *Launcher) leavePrograms() {
	l.withoutReaper = true
	l.newGroups = func() (*groups, error) { return nil, errors.New("left out") }
}

// withoutSignal executes this program again as args, without its parent-death signal. That belongs
// to a thread: to the one that executes a program, and then to the first of that.
func withoutSignal(args ...string) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0); err != nil {
		return err
	}
	return syscall.Exec("/proc/self/exe", append([]string{"test"}, args...), os.Environ())
}

// survive lives until its host is gone, and reports that in the named pipe.
func survive(args []string) error {
	fmt.Fprintln(os.Stdout, os.Getpid())
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return os.WriteFile(args[0], []byte("alive\n"), 0)
}

func useMemory(args []string) error {
	size, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	held := make([]byte, size)
	for i := 0; i < len(held); i += os.Getpagesize() {
		held[i] = 1
	}
	fmt.Fprintln(os.Stdout, "done")
	return nil
}

func writeFile(args []string) error {
	if err := os.WriteFile(args[0], make([]byte, 1<<20), 0o600); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "done")
	return nil
}

// useCPU spins until it has used a second and a half.
func useCPU([]string) error {
	for {
		var used unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
			return err
		}
		if used.Utime.Nano()+used.Stime.Nano() > int64(1500*time.Millisecond) {
			fmt.Fprintln(os.Stdout, "done")
			return nil
		}
	}
}

func openMany([]string) error {
	for range 100 {
		if _, err := os.Open("/"); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stdout, "done")
	return nil
}

// flood writes more than a pipe holds and dies with it.
func flood([]string) error {
	if _, err := unix.FcntlInt(1, unix.F_SETPIPE_SZ, 256<<10); err != nil {
		return err
	}
	if _, err := os.Stdout.Write(make([]byte, 200<<10)); err != nil {
		return err
	}
	return errors.New("flooded")
}

func isSubreaper() (bool, error) {
	var value int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&value)), 0, 0, 0)
	return value == 1, err
}
