package sandbox

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// attackPrograms are the hostile programs.
func attackPrograms() map[string]func(args []string) error {
	programs := map[string]func([]string) error{"victim": beVictim}
	for _, more := range []map[string]func([]string) error{
		filePrograms(), protectPrograms(), execPrograms(), processPrograms(), hostDeathPrograms(), networkPrograms(), kernelPrograms(), sharePrograms(),
		limitPrograms(), machinePrograms(), mountPrograms(), refusalPrograms(), rightsPrograms(), proxyPrograms(),
	} {
		maps.Copy(programs, more)
	}
	return programs
}

// attackWith runs the hostile program that its first argument names.
func attackWith(args []string) error {
	act, ok := attackPrograms()[args[0]]
	if !ok {
		return fmt.Errorf("there is no attack %q", args[0])
	}
	return act(args[1:])
}

// victim is a process of the host's that is not confined.
type victim struct {
	pid int
	// stop ends it, and says whether something else has killed it before.
	stop func() bool
	// in the victim: the address of its secret, and its descriptor
	address, fd string
}

// victimSecret is the victim's secret.
const victimSecret = "swordfish-in-memory"

// newVictim starts a victim of a user, in a directory.
func newVictim(t *testing.T, uid int, dir string) *victim {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "attack", "victim")
	cmd.Dir = dir
	cmd.Env = []string{"SECRET=" + victimSecret}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	v := &victim{pid: cmd.Process.Pid}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	must(t, err)
	v.address, v.fd, _ = strings.Cut(strings.TrimSpace(line), " ")
	v.stop = sync.OnceValue(func() bool {
		stdin.Close()
		_ = cmd.Wait() // how it ended is in its state
		status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
		return ok && status.Signaled()
	})
	t.Cleanup(func() { v.stop() })
	return v
}

// killed reports whether it has been killed. A signal that was sent before it is asked to end
// arrives first.
func (v *victim) killed(*testing.T, string) bool { return v.stop() }

func (v *victim) String() string { return fmt.Sprint(v.pid) }

// beVictim holds a secret in memory, in its environment and in an open file until
// its input ends.
func beVictim([]string) error {
	held := []byte(victimSecret)
	if err := setDiskPriority(ioprioOfProcess, 0, 2); err != nil { // the test's may have changed
		return err
	}
	fd, err := unix.MemfdCreate("secret", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	if _, err := unix.Pwrite(fd, held, 0); err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "%p %d\n", &held[0], fd)
	_, err = os.Stdin.Read(make([]byte, 1))
	if len(held) == 0 { // it is held until here
		return nil
	}
	return err
}
