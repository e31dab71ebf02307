package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// shareAttacks use what processes of a machine share: memory, queues and terminals.
func shareAttacks() []attack {
	return []attack{
		{name: "read the host's shared memory (System V)", root: all, stage: func(s *scene) attempt {
			t := s.t
			id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o666)
			must(t, err)
			memory, err := unix.SysvShmAttach(id, 0, 0)
			must(t, err)
			copy(memory, s.secret)
			t.Cleanup(func() {
				must(t, unix.SysvShmDetach(memory))
				_, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil)
				must(t, err)
			})
			return attempt{program: []string{"sharedmemory", strconv.Itoa(id)}, happened: printed(s.secret)}
		}},
		{name: "read the host's message queue (POSIX)", root: all, stage: func(s *scene) attempt {
			t := s.t
			name := "toolhost-attack-" + fmt.Sprint(os.Getpid(), "-", scenes.Load())
			queue, err := openQueue(name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR)
			must(t, err)
			t.Cleanup(func() {
				unix.Close(queue)
				must(t, queueCall(unix.SYS_MQ_UNLINK, name))
			})
			// The permissions of others must not depend on the test's umask.
			must(t, unix.Fchmod(queue, 0o666))
			text := []byte(s.secret)
			if _, _, errno := unix.Syscall6(unix.SYS_MQ_TIMEDSEND, uintptr(queue), uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)), 0, 0, 0); errno != 0 {
				t.Fatal(errno)
			}
			return attempt{program: []string{"queue", name}, happened: printed(s.secret)}
		}},
		{name: "read what is typed into a terminal of its user", root: all, stage: terminal("reads", nil)},
		{name: "type into a terminal (`TIOCSTI`)", root: all, stage: terminal("types", nil)},
		{name: "may execute others: read what is typed into a terminal of its user", root: all, stage: terminal("reads", executes)},
		{name: "may execute others: type into a terminal (`TIOCSTI`)", root: all, stage: terminal("types", executes)},
	}
}

// terminal is one of the plugin's user, on which something is typed.
func terminal(how string, edit func(*Profile)) func(*scene) attempt {
	return func(s *scene) attempt {
		t := s.t
		master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		must(t, err)
		t.Cleanup(func() { unix.Close(master) })
		must(t, unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0))
		number, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
		must(t, err)
		name := fmt.Sprintf("/dev/pts/%d", number)
		if os.Geteuid() == 0 {
			must(t, os.Chown(name, owner, owner))
		}
		slave, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		must(t, err)
		t.Cleanup(func() { unix.Close(slave) })
		at := attempt{program: []string{"terminal", how, name}, profile: edit}
		if how == "types" {
			at.happened = func(t *testing.T, _ string) bool {
				t.Helper()
				return ready(t, slave)
			}
			return at
		}
		_, err = unix.Write(master, []byte(s.secret+"\n"))
		must(t, err)
		at.happened = printed(s.secret)
		return at
	}
}

// queueAttributes are struct mq_attr.
type queueAttributes struct{ flags, messages, size, current, _, _, _, _ int64 }

func openQueue(name string, flags int) (int, error) {
	text, err := unix.BytePtrFromString(name)
	if err != nil {
		return 0, err
	}
	attributes := queueAttributes{messages: 4, size: 64}
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(text)), uintptr(flags|unix.O_CLOEXEC), 0o666, uintptr(unsafe.Pointer(&attributes)), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(fd), nil
}

func queueCall(call uintptr, name string) error {
	text, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(call, uintptr(unsafe.Pointer(text)), 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// sharePrograms are the programs of shareAttacks.
func sharePrograms() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"sharedmemory": func(args []string) error {
			id, err := strconv.Atoi(args[0])
			if err != nil {
				return err
			}
			memory, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
			if err != nil {
				return err
			}
			_, err = os.Stdout.Write(memory[:64])
			return err
		},
		"queue": func(args []string) error {
			queue, err := openQueue(args[0], unix.O_RDONLY)
			if err != nil {
				return err
			}
			text := make([]byte, 64)
			n, _, errno := unix.Syscall6(unix.SYS_MQ_TIMEDRECEIVE, uintptr(queue), uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)), 0, 0, 0)
			if errno != 0 {
				return errno
			}
			_, err = os.Stdout.Write(text[:n])
			return err
		},
		"terminal": func(args []string) error {
			// The first terminal that a session's leader opens becomes its own.
			fd, err := unix.Open(args[1], unix.O_RDWR|unix.O_NONBLOCK, 0)
			if err != nil {
				return err
			}
			if args[0] == "reads" {
				text := make([]byte, 64)
				n, err := unix.Read(fd, text)
				fmt.Fprintf(os.Stdout, "%s\n", text[:max(n, 0)])
				return err
			}
			for _, letter := range []byte("rm -rf .\n") {
				if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, uintptr(unsafe.Pointer(&letter))); errno != 0 {
					return errors.Join(errno, os.ErrPermission)
				}
			}
			return nil
		},
	}
}
