package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// processAttacks reach for other processes.
func processAttacks() []attack {
	kill := func(uid func() int, how string) func(*scene) attempt {
		return func(s *scene) attempt {
			t := s.t
			v := newVictim(t, uid(), "/")
			return attempt{program: []string{"kill", how, v.String()}, happened: v.killed}
		}
	}
	steal := func(how string) func(*scene) attempt {
		return func(s *scene) attempt {
			t := s.t
			v := newVictim(t, pluginUID(), "/")
			return attempt{program: []string{"steal", how, v.String(), v.address, v.fd}, happened: printed(victimSecret)}
		}
	}
	// The condition that holds for the victim before, and must hold afterwards.
	steer := func(how string, look func(t *testing.T, pid int) string) func(*scene) attempt {
		return func(s *scene) attempt {
			t := s.t
			v := newVictim(t, pluginUID(), "/")
			before := look(t, v.pid)
			return attempt{program: []string{"steer", how, v.String()}, happened: func(t *testing.T, _ string) bool {
				t.Helper()
				return look(t, v.pid) != before
			}}
		}
	}
	return []attack{
		{name: "kill a process of the host's user", root: all, stage: kill(os.Geteuid, "kill")},
		{name: "kill a process of its own user", root: all, stage: kill(pluginUID, "kill")},
		{name: "kill by a handle (`pidfd_send_signal`)", root: all, stage: kill(pluginUID, "pidfd")},
		{name: "kill a thread (`tgkill`)", root: all, stage: kill(pluginUID, "tgkill")},
		{name: "kill by the owner of a descriptor (`F_SETOWN`, `F_SETSIG`)", root: all, stage: kill(pluginUID, "owner")},
		{name: "look into another process (`ptrace`)", root: all, stage: steal("ptrace")},
		{name: "read the memory of another process (`process_vm_readv`)", root: all, stage: steal("vm")},
		{name: "read the memory of another process (`/proc/PID/mem`)", root: all, stage: steal("mem")},
		{name: "read the environment of another process (`/proc/PID/environ`)", root: all, stage: steal("environ")},
		{name: "take an open file of another process (`pidfd_getfd`)", root: all, stage: steal("getfd")},
		{name: "take an open file of another process (`/proc/PID/fd`)", root: all, stage: steal("fd")},
		{name: "limit another process (`prlimit`)", root: all, stage: func(s *scene) attempt {
			t := s.t
			v := newVictim(t, os.Geteuid(), "/") // another user's needs a capability
			return attempt{program: []string{"steer", "prlimit", v.String()}, happened: func(t *testing.T, _ string) bool {
				t.Helper()
				var of unix.Rlimit
				must(t, unix.Prlimit(v.pid, unix.RLIMIT_NOFILE, nil, &of))
				return of.Max == 5
			}}
		}},
		{name: "slow another process down (`setpriority`)", root: all, stage: steer("nice", priorityOf)},
		{name: "slow all processes of its user down (`setpriority`)", root: all, rootOnly: "the test could not undo it", stage: steer("niceuser", priorityOf)},
		{name: "slow another process's disk down (`ioprio_set`)", root: all, stage: steer("ioprio", diskPriorityOf)},
		{name: "slow the disk down for all processes of its user (`ioprio_set`)", root: all, stage: steer("iopriouser", diskPriorityOf)},
		{name: "take processors from another process (`sched_setaffinity`)", root: all, stage: steer("affinity", func(t *testing.T, pid int) string {
			t.Helper()
			var set unix.CPUSet
			must(t, unix.SchedGetaffinity(pid, &set))
			return fmt.Sprint(set.Count())
		})},
		{name: "have the kernel schedule another process last (`sched_setscheduler`)", root: all, stage: steer("scheduler", func(t *testing.T, pid int) string {
			t.Helper()
			attr, err := unix.SchedGetAttr(pid, 0)
			must(t, err)
			return fmt.Sprint(attr.Policy)
		})},
		{name: "read the secrets in the host's environment", root: all, by: "environment of its own", stage: func(s *scene) attempt {
			t := s.t
			return attempt{program: []string{"read", "/proc/self/environ"}, happened: printed(s.secret), bare: bareWith(t, []string{"SECRET=" + s.secret}, nil, nil)}
		}},
		{name: "read the host's open files (inherited descriptors)", root: all, by: "descriptors closed", stage: func(s *scene) attempt {
			t := s.t
			f := open(t, s.state+"/approver.key")
			fd, err := unix.Dup(int(f.Fd())) // which everything inherits that does not take care
			must(t, err)
			t.Cleanup(func() { unix.Close(fd) })
			return attempt{program: []string{"readfds"}, happened: printed(s.secret), bare: bareWith(t, nil, nil, f)}
		}},
		{name: "read the host's standard input", root: all, by: "standard input of its own", stage: func(s *scene) attempt {
			t := s.t
			return attempt{program: []string{"readstdin"}, happened: printed(s.secret), bare: bareWith(t, nil, open(t, s.home+"/public"), nil)}
		}},
		{name: "outlive its end (double fork, session of its own)", root: all, by: "subreaper, walk of /proc", stage: func(s *scene) attempt {
			t := s.t
			return outlive(t, s, func(_ *testing.T, p *Process) { p.Kill() })
		}},
		{name: "stop itself, so that it cannot be asked to end (`SIGSTOP`)", root: all, by: "SIGKILL", stage: stopItself},
	}
}

// Who ioprio_set(2) is for.
const (
	ioprioOfProcess = 1
	ioprioOfUser    = 3
)

func diskPriorityOf(t *testing.T, pid int) string {
	t.Helper()
	value, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, ioprioOfProcess, uintptr(pid), 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	return fmt.Sprint(value)
}

func setDiskPriority(whose, who int, class uintptr) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, uintptr(whose), uintptr(who), class<<13|4); errno != 0 {
		return errno
	}
	return nil
}

func priorityOf(t *testing.T, pid int) string {
	t.Helper()
	value, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
	must(t, err)
	return fmt.Sprint(value)
}

// bareWith runs a program as a host would that takes no care: with its
// environment, input and descriptors.
func bareWith(_ *testing.T, env []string, stdin, inherited *os.File) func(*testing.T, []string) string {
	return func(t *testing.T, program []string) string {
		t.Helper()
		cmd := exec.Command("/proc/self/exe", program...)
		cmd.Env = env
		if stdin != nil {
			cmd.Stdin = stdin
		}
		if inherited != nil {
			cmd.ExtraFiles = []*os.File{inherited}
		}
		out, err := cmd.Output()
		must(t, err)
		return string(out)
	}
}

// outlive has a program leave a daemon behind that says "alive" when it is asked
// to after its program has ended.
func outlive(t *testing.T, s *scene, end func(*testing.T, *Process)) attempt {
	t.Helper()
	l := s.newLine()
	return attempt{
		program: []string{"daemon", l.ask.Name(), l.answers.Name()},
		during: func(t *testing.T, p *Process) {
			t.Helper()
			readPID(t, bufio.NewReader(p.Stdout))
			end(t, p)
		},
		bare: func(t *testing.T, program []string) string {
			t.Helper()
			cmd := exec.Command("/proc/self/exe", program...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			stdout, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			pid := readPID(t, bufio.NewReader(stdout))
			daemon := watch(t, pid)
			must(t, unix.Kill(-cmd.Process.Pid, unix.SIGKILL))
			_ = cmd.Wait() // it was killed
			alive := l.alive(t)
			if !daemon.gone(patience) {
				t.Error("it does not end when it has answered")
			}
			return fmt.Sprint(alive)
		},
		happened: func(t *testing.T, said string) bool {
			t.Helper()
			return said == "true" || said == "" && l.alive(t)
		},
	}
}

func stopItself(*scene) attempt {
	stopped := func(t *testing.T, pid int) {
		t.Helper()
		must(t, unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil))
	}
	return attempt{
		program: []string{"stop"},
		during: func(t *testing.T, p *Process) {
			t.Helper()
			// Process 1 of a namespace cannot stop itself. It waits to be killed.
			if readLine(t, p); !slices.Contains(p.Report.Layers, string(LayerPIDNS)) {
				stopped(t, p.PID())
			}
			p.Kill()
		},
		bare: func(t *testing.T, program []string) string {
			t.Helper()
			cmd := exec.Command("/proc/self/exe", program...)
			must(t, cmd.Start())
			stopped(t, cmd.Process.Pid)
			must(t, cmd.Process.Signal(unix.SIGTERM))
			v := watch(t, cmd.Process.Pid)
			lives := !v.gone(0)
			must(t, cmd.Process.Kill())
			_ = cmd.Wait() // it was killed
			if lives {
				return "done"
			}
			return ""
		},
	}
}

func readLine(t *testing.T, p *Process) string {
	t.Helper()
	line, err := bufio.NewReader(p.Stdout).ReadString('\n')
	must(t, err)
	return strings.TrimSpace(line)
}

// processPrograms are the programs of processAttacks.
func processPrograms() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"kill":  killBy,
		"steal": steal,
		"steer": steer,
		"readfds": func([]string) error {
			for fd := 3; fd < 64; fd++ {
				text := make([]byte, 64)
				if n, err := unix.Pread(fd, text, 0); err == nil {
					fmt.Fprintf(os.Stdout, "%s\n", text[:n])
				}
			}
			return nil
		},
		"readstdin": func([]string) error {
			text := make([]byte, 64)
			n, err := os.Stdin.Read(text)
			fmt.Fprintf(os.Stdout, "%s\n", text[:n])
			return err
		},
		"stop": func([]string) error {
			fmt.Fprintln(os.Stdout, "stopping")
			if err := unix.Kill(os.Getpid(), unix.SIGSTOP); err != nil {
				return err
			}
			return untilKilled()
		},
		"daemon": beDaemon,
		"answer": answer,
	}
}

// beDaemon starts a process without a parent that outlives it.
func beDaemon(args []string) error {
	if len(args) == 2 {
		cmd := exec.Command("/proc/self/exe", append([]string{"attack", "daemon"}, append(args, "again")...)...)
		cmd.Stdout = os.Stdout
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Run(); err != nil {
			return err
		}
		return untilKilled()
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0); err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe", "attack", "answer", args[0], args[1])
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout = w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	w.Close()
	line, err := bufio.NewReader(r).ReadString('\n')
	fmt.Fprint(os.Stdout, line)
	return err
}

// answer says that it is alive when it is asked.
func answer(args []string) error {
	in, err := os.OpenFile(args[0], os.O_RDWR, 0)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(args[1], os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, os.Getpid())
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return err
	}
	_, err = out.WriteString("alive\n")
	return err
}

func killBy(args []string) error {
	pid, err := strconv.Atoi(args[1])
	if err != nil || pid <= 1 {
		return errors.Join(err, errors.New("no process to kill"))
	}
	switch args[0] {
	case "kill":
		err = unix.Kill(pid, unix.SIGKILL)
	case "tgkill":
		err = unix.Tgkill(pid, pid, unix.SIGKILL)
	case "pidfd":
		var fd int
		if fd, err = unix.PidfdOpen(pid, 0); err == nil {
			err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
	case "owner":
		fds := make([]int, 2)
		if err := unix.Pipe2(fds, unix.O_NONBLOCK); err != nil {
			return err
		}
		for _, set := range []struct{ command, value int }{
			{unix.F_SETOWN, pid}, {unix.F_SETSIG, int(unix.SIGKILL)}, {unix.F_SETFL, unix.O_ASYNC | unix.O_NONBLOCK},
		} {
			if _, err := unix.FcntlInt(uintptr(fds[0]), set.command, set.value); err != nil {
				return err
			}
		}
		_, err = unix.Write(fds[1], []byte("x"))
		if err == nil {
			return nil // whether it was sent is unknown
		}
	}
	if err != nil {
		return err
	}
	return done()
}

// steal prints what another process knows.
func steal(args []string) error {
	pid, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	address, err := strconv.ParseUint(args[2], 0, 64)
	if err != nil {
		return err
	}
	text := make([]byte, len(victimSecret))
	switch args[0] {
	case "vm":
		_, err = unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &text[0], Len: uint64(len(text))}},
			[]unix.RemoteIovec{{Base: uintptr(address), Len: len(text)}}, 0)
	case "mem":
		var f *os.File
		if f, err = os.Open(fmt.Sprintf("/proc/%d/mem", pid)); err == nil {
			_, err = f.ReadAt(text, int64(address))
		}
	case "environ":
		text, err = os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	case "fd":
		text, err = os.ReadFile(fmt.Sprintf("/proc/%d/fd/%s", pid, args[3]))
	case "getfd":
		text, err = stealFD(pid, args[3], text)
	case "ptrace":
		runtime.LockOSThread()
		if err = unix.PtraceSeize(pid); err == nil {
			err = unix.PtraceInterrupt(pid)
		}
		if err == nil {
			_, err = unix.Wait4(pid, nil, unix.WALL, nil)
		}
		if err == nil {
			_, err = unix.PtracePeekData(pid, uintptr(address), text)
		}
	}
	fmt.Fprintf(os.Stdout, "%s\n", text)
	return err
}

func stealFD(pid int, name string, text []byte) ([]byte, error) {
	of, err := strconv.Atoi(name)
	if err != nil {
		return nil, err
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	fd, err := unix.PidfdGetfd(process, of, 0)
	if err != nil {
		return nil, err
	}
	_, err = unix.Pread(fd, text, 0)
	return text, err
}

// steer changes how another process runs.
func steer(args []string) error {
	pid, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	switch args[0] {
	case "prlimit":
		return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 5, Max: 5}, nil)
	case "nice":
		return unix.Setpriority(unix.PRIO_PROCESS, pid, 19)
	case "niceuser":
		return unix.Setpriority(unix.PRIO_USER, owner, 19) // not 0: without a guard that is all of root's
	case "ioprio":
		return setDiskPriority(ioprioOfProcess, pid, 3)
	case "iopriouser":
		uid := os.Geteuid()
		if uid == 0 {
			uid = owner // root's own are those of the whole machine
		} else if err := setDiskPriority(ioprioOfUser, 0, 3); err == nil {
			return nil // 0 is itself
		}
		return setDiskPriority(ioprioOfUser, uid, 3)
	case "affinity":
		var set unix.CPUSet
		set.Set(0)
		return unix.SchedSetaffinity(pid, &set)
	case "scheduler":
		var parameter int32
		if _, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(pid), unix.SCHED_BATCH, uintptr(unsafe.Pointer(&parameter))); errno != 0 {
			return errno
		}
		return nil
	}
	return fmt.Errorf("steer %q", args[0])
}
