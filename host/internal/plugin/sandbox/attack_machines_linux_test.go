package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// machines are machines that lack some layers.
func machines() map[string]machine {
	const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC
	return map[string]machine{
		"no user namespaces":          {lacks: LayerUserNS, call: unix.SYS_CLONE, flags: unix.CLONE_NEWUSER, errno: unix.EPERM},
		"no more user namespaces":     {lacks: LayerUserNS, call: unix.SYS_CLONE, flags: unix.CLONE_NEWUSER, errno: unix.ENOSPC},
		"no namespaces at all":        {lacks: LayerPIDNS, call: unix.SYS_CLONE, flags: namespaces, errno: unix.EPERM},
		"no clone3":                   {lacks: LayerCgroup, call: unix.SYS_CLONE3, errno: unix.ENOSYS},
		"no Landlock in the kernel":   {lacks: LayerLandlock, call: unix.SYS_LANDLOCK_CREATE_RULESET, errno: unix.ENOSYS},
		"Landlock switched off":       {lacks: LayerLandlock, call: unix.SYS_LANDLOCK_CREATE_RULESET, errno: unix.EOPNOTSUPP},
		"no filters of system calls":  {lacks: LayerSeccomp, call: unix.SYS_SECCOMP, errno: unix.EINVAL},
		"mounts refused":              {lacks: LayerMounts, call: unix.SYS_MOUNT, errno: unix.EACCES},
		"mounts of an older kernel":   {lacks: LayerMounts, call: unix.SYS_OPEN_TREE, errno: unix.ENOSYS},
		"a masked /proc":              {lacks: LayerProc, mask: "/proc/sys"},
		"control groups that are not": {lacks: LayerCgroup, mask: "/sys/fs/cgroup"},
	}
}

// machine lacks a layer: a system call is refused, or something is mounted over a path.
type machine struct {
	lacks Layer
	call  uintptr
	flags uint32 // only if the first argument has one of them
	errno syscall.Errno
	mask  string
}

// outcome is the result of a program on such a machine.
type outcome struct {
	Report  Report
	Missing Layer // of a MissingError
	Error   string
	Output  string
}

// The control: if nothing is taken away, no layer is missing because of it.
func TestAttackOnThisMachine(t *testing.T) {
	got := (&machine{}).start(t, Confinement{Isolation: Strict})
	if got.Output != "done\n" || got.Error != "" {
		t.Errorf("printed %q, error %q", got.Output, got.Error)
	}
	for name, m := range machines() {
		if m.lacks != LayerCgroup && reports(got.Report, m.lacks) {
			t.Errorf("%s: %v", name, got.Report)
		}
	}
}

// missesStrict is the layer whose absence makes strict impossible here, "" if none does.
func (m *machine) missesStrict() Layer {
	switch {
	case m.lacks == LayerUserNS && os.Geteuid() != 0:
		return LayerPIDNS // which takes it
	case m.lacks == LayerPIDNS && os.Geteuid() == 0:
		return LayerIPCNS // which is tried first
	}
	if slices.Contains(layersOf(Strict), m.lacks) {
		return m.lacks
	}
	return ""
}

func reports(r Report, layer Layer) bool {
	return slices.ContainsFunc(r.Missing, func(g Gap) bool { return g.Layer == layer && g.Reason != "" })
}

// start starts a program as a host on such a machine would.
func (m *machine) start(t *testing.T, c Confinement) outcome {
	t.Helper()
	order, err := json.Marshal(c)
	must(t, err)
	args := []string{"attack", "machine", string(order), fmt.Sprint(m.call), fmt.Sprint(m.flags), fmt.Sprint(int(m.errno)), m.mask}
	cmd := exec.Command("/proc/self/exe", args...)
	if m.mask != "" {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: os.Getegid(), Size: 1}},
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
		}
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	var got outcome
	must(t, json.Unmarshal(out, &got))
	return got
}

// machinePrograms are hosts on lesser machines.
func machinePrograms() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"machine": func(args []string) error {
			var c Confinement
			var m machine
			if err := json.Unmarshal([]byte(args[0]), &c); err != nil {
				return err
			}
			if _, err := fmt.Sscan(strings.Join(args[1:4], " "), &m.call, &m.flags, (*uintptr)(&m.errno)); err != nil {
				return err
			}
			if m.mask = args[4]; m.mask != "" {
				if err := unix.Mount("tmpfs", m.mask, "tmpfs", 0, ""); err != nil {
					return fmt.Errorf("mask %s: %w", m.mask, err)
				}
			}
			if m.errno != 0 {
				if err := m.refuse(); err != nil {
					return fmt.Errorf("refuse a call: %w", err)
				}
			}
			return json.NewEncoder(os.Stdout).Encode(startOn(context.Background(), c))
		},
	}
}

func startOn(ctx context.Context, c Confinement) outcome {
	var got outcome
	fail := func(err error) outcome {
		got.Error = err.Error()
		if missing, ok := errors.AsType[*MissingError](err); ok {
			got.Missing = missing.Gap.Layer
		}
		return got
	}
	l, err := NewLauncher()
	if err != nil {
		return fail(err)
	}
	defer func() { _ = l.Close() }() // it always returns nil
	binary, err := os.Open("/proc/self/exe")
	if err != nil {
		return fail(err)
	}
	defer binary.Close()
	proc, err := l.Launch(ctx, Profile{Binary: binary, Path: "program", Args: []string{"attack", "done"}, Confinement: c})
	if err != nil {
		return fail(err)
	}
	defer proc.closeStdio()
	text, err := io.ReadAll(proc.Stdout)
	<-proc.Done()
	if err != nil {
		return fail(err)
	}
	got.Report, got.Output = proc.Report, string(text)
	return got
}

// refuse makes the kernel refuse a system call to this process and to all that it
// starts.
func (m *machine) refuse() error {
	const (
		load, jumpEqual, jumpAny, answer = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, unix.BPF_RET | unix.BPF_K
		argument0                        = 16
		refuse                           = 0x00050000
		allow                            = 0x7fff0000
	)
	filter := []unix.SockFilter{
		{Code: load},
		// Its flags cannot be seen, so those who refuse some refuse all of it.
		{Code: jumpEqual, K: unix.SYS_CLONE3, Jf: 1},
		{Code: answer, K: refuse | uint32(unix.ENOSYS)},
		{Code: jumpEqual, K: uint32(m.call), Jf: 3},
		{Code: load, K: argument0},
		{Code: jumpAny, K: m.flags, Jf: 1},
		{Code: answer, K: refuse | uint32(m.errno)},
		{Code: answer, K: allow},
	}
	if m.flags == 0 {
		filter = slices.Delete(filter, 4, 6)
		filter[3].Jf = 1
	}
	if m.call != unix.SYS_CLONE {
		filter = slices.Delete(filter, 1, 3)
	}
	runtime.LockOSThread() // what allows an ordinary user the filter is set for one thread
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// All threads: any of them may start the launcher.
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}
