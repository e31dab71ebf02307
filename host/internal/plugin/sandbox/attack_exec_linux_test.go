package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/testprogram"
)

// execAttacks run programs that the plugin may not run.
func execAttacks() []attack {
	run := func(edit func(*Profile), program ...string) func(*scene) attempt {
		return func(*scene) attempt { return attempt{program: program, profile: edit} }
	}
	inOwn := func(edit func(*Profile), program string) func(*scene) attempt {
		return func(s *scene) attempt {
			return attempt{program: []string{program, s.own + "/dropped"}, profile: edit}
		}
	}
	system := func(p *Profile) { p.Confinement.Exec = []string{ExecSystem} }
	return []attack{
		{name: "execute a file that it has made in the workspace", root: all, stage: run(nil, "drop", "dropped")},
		{name: "execute a file that it has made in its own directory", root: all, stage: inOwn(nil, "drop")},
		{name: "execute a file that it has made in its temporary directory", root: all, stage: func(s *scene) attempt {
			return attempt{program: []string{"drop", s.tmp + "/dropped"}}
		}},
		{name: "execute a file that has no name (`O_TMPFILE`)", root: all, stage: run(nil, "dropunnamed")},
		{name: "execute a file in memory (`memfd_create`)", root: all, stage: run(nil, "dropmemory")},
		{name: "execute a program of the system", root: all, stage: run(nil, "command", "/bin/echo", "done")},
		{name: "execute a script with a shell", root: all, stage: run(nil, "command", "/bin/sh", "-c", "echo done")},
		{name: "may execute the system: execute a file that it has made", root: all, stage: inOwn(system, "drop")},
		{name: "may execute the system: execute a file in memory (`memfd_create`)", root: nowhere, stage: run(system, "dropmemory")},
		{name: "may execute the system: have the dynamic loader load a file that it has made", root: "is", stage: inOwn(system, "loader")},
		{name: "may execute the system: have a shell run a script that it has made", root: nowhere, stage: inOwn(system, "shellscript")},
		{name: "replace its own program", root: "is", stage: func(s *scene) attempt {
			t := s.t
			path := s.workspace + "/bin/plugin"
			return attempt{program: []string{"replace", path}, profile: asProgram(t, path), happened: func(t *testing.T, _ string) bool {
				t.Helper()
				info, err := os.Stat(path)
				must(t, err)
				return info.Size() < 1000
			}}
		}},
		{name: "overwrite its own program by its descriptor (`/proc/self/exe`) when nothing runs it any more", root: all, stage: func(s *scene) attempt {
			t := s.t
			path := s.workspace + "/bin/plugin"
			return attempt{
				program: []string{"overwriteself"},
				profile: func(p *Profile) {
					asProgram(t, path)(p)
					p.Confinement.Exec = []string{ExecSystem}
				},
				happened: func(t *testing.T, _ string) bool {
					t.Helper()
					head := make([]byte, 6)
					_, err := open(t, path).ReadAt(head, 0)
					must(t, err)
					return string(head) == "attack"
				},
			}
		}},
		{name: "gain rights by a setuid program", root: all, rootOnly: "only root can make one that is worth it", by: "no_new_privs", stage: func(s *scene) attempt {
			t := s.t
			path := filepath.Join(s.dir, "setuid")
			copyProgram(t, path)
			must(t, unix.Chmod(path, 0o4755))
			return attempt{
				program:  []string{"command", path, "attack", "whoami"},
				profile:  func(p *Profile) { p.Confinement.Exec = []string{path} },
				happened: printed("euid 0 of " + fmt.Sprint(owner)),
				bare: func(t *testing.T, program []string) string {
					t.Helper()
					cmd := exec.Command("/proc/self/exe", program...)
					cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner, Gid: owner}}
					out, err := cmd.CombinedOutput()
					if err != nil {
						t.Fatalf("%v\n%s", err, out)
					}
					return string(out)
				},
			}
		}},
	}
}

// asProgram makes a copy of this program and has it executed.
func asProgram(t *testing.T, path string) func(*Profile) {
	t.Helper()
	must(t, os.Remove(path))
	copyProgram(t, path)
	if os.Geteuid() == 0 {
		must(t, os.Chown(path, owner, owner))
	}
	return func(p *Profile) { p.Binary = open(t, path) }
}

func copyProgram(t *testing.T, path string) {
	t.Helper()
	self := open(t, "/proc/self/exe")
	must(t, testprogram.Write(path, self))
}

// copySelf is for the attacking programs.
func copySelf(path string) error {
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o755)
}

// execPrograms are the programs of execAttacks.
func execPrograms() map[string]func(args []string) error {
	say := []string{"attack", "done"}
	return map[string]func([]string) error{
		"done":    func([]string) error { return done() },
		"command": func(args []string) error { return command(args[0], args[1:]...) },
		"whoami": func([]string) error {
			_, err := fmt.Fprintf(os.Stdout, "euid %d of %d\n", os.Geteuid(), os.Getuid())
			return err
		},
		"drop": func(args []string) error {
			if err := copySelf(args[0]); err != nil {
				return err
			}
			path, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			return command(path, say...)
		},
		"dropunnamed": func([]string) error {
			fd, err := unix.Open(".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o755)
			if err != nil {
				return err
			}
			return executeCopy(fd, say)
		},
		"dropmemory": func([]string) error {
			fd, err := unix.MemfdCreate("dropped", unix.MFD_CLOEXEC)
			if err != nil {
				return err
			}
			return executeCopy(fd, say)
		},
		"loader": func(args []string) error {
			text, err := os.ReadFile("/bin/echo")
			if err != nil {
				return err
			}
			if err := os.WriteFile(args[0], text, 0o755); err != nil {
				return err
			}
			loader := loaderOf(bytes.NewReader(text))
			if loader == "" {
				return command(args[0], "done") // it is linked statically
			}
			return command(loader, args[0], "done")
		},
		"shellscript": func(args []string) error {
			if err := os.WriteFile(args[0], []byte("echo done"), 0o600); err != nil {
				return err
			}
			return command("/bin/sh", args[0])
		},
		"overwriteself": overwriteSelf,
		"overwritefd":   func([]string) error { return overwrite("/proc/self/fd/3") },
	}
}

// executeCopy executes a copy of this program from an open file, once no one has it open for
// writing.
func executeCopy(fd int, args []string) error {
	read, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "dropped")
	if _, err := f.Write(text); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return syscall.Exec(fmt.Sprintf("/proc/self/fd/%d", read), append([]string{"dropped"}, args...), nil)
}

func command(path string, args ...string) error {
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// overwriteSelf keeps its program open, becomes a shell, so that nothing executes
// it any more, and writes to it.
func overwriteSelf([]string) error {
	fd, err := unix.Open("/proc/self/exe", unix.O_PATH, 0)
	if err != nil {
		return err
	}
	return syscall.Exec("/bin/sh", []string{"sh", "-c", fmt.Sprintf("printf attack 1<>/proc/self/fd/%d", fd)}, nil)
}

// exchange puts another directory in the place of one.
func exchange(args []string) error {
	other := args[0] + "2"
	if err := os.MkdirAll(other, 0o777); err != nil {
		return err
	}
	return unix.Renameat2(unix.AT_FDCWD, args[0], unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
}
