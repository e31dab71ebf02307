package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fileAttacks reach for files that are not the plugin's.
func fileAttacks() []attack {
	reading := func(of func(*scene) []string, edit func(*Profile)) func(*scene) attempt {
		return func(s *scene) attempt {
			return attempt{program: append([]string{"read"}, of(s)...), profile: edit, happened: printed(s.secret)}
		}
	}
	outside := func(act, name string) func(*scene) attempt {
		return func(s *scene) attempt {
			t := s.t
			path := s.path(name)
			before := lookAt(t, path)
			return attempt{program: []string{act, path}, happened: func(t *testing.T, _ string) bool {
				t.Helper()
				return lookAt(t, path) != before
			}}
		}
	}
	inHosts := func(dir string) func(*scene) attempt {
		return func(s *scene) attempt {
			path := filepath.Join(dir, "toolhost-attack-"+strings.ReplaceAll(s.dir, "/", "-"))
			return attempt{program: []string{"create", path}, happened: exists(path)}
		}
	}
	return []attack{
		{name: "read a private file (`~/.ssh/id`)", root: all, stage: reading(func(s *scene) []string { return []string{s.home + "/.ssh/id"} }, nil)},
		{name: "read a file that all may read", root: all, stage: reading(func(s *scene) []string { return []string{s.home + "/public"} }, nil)},
		{name: "read through a symbolic link in the workspace", root: all, stage: reading(func(s *scene) []string {
			return []string{s.workspace + "/link", s.home + "/public"}
		}, nil)},
		{name: "read through `..`", root: all, stage: reading(func(*scene) []string { return []string{"../home/public"} }, nil)},
		{name: "read through the root directory of another process (`/proc/PID/root`)", root: all, stage: func(s *scene) attempt {
			t := s.t
			v := newVictim(t, pluginUID(), s.home)
			return attempt{program: []string{"read", fmt.Sprintf("/proc/%d/root%s/public", v.pid, s.home)}, happened: printed(s.secret)}
		}},
		{name: "read through the working directory of another process (`/proc/PID/cwd`)", root: all, stage: func(s *scene) attempt {
			t := s.t
			v := newVictim(t, pluginUID(), s.home)
			return attempt{program: []string{"read", fmt.Sprintf("/proc/%d/cwd/public", v.pid)}, happened: printed(s.secret)}
		}},
		{name: "read the host's state directory, its keys", root: all, stage: reading(func(s *scene) []string { return []string{s.state + "/approver.key"} }, nil)},
		{name: "read the directory of another plugin of the same user", root: all, stage: reading(func(s *scene) []string { return []string{s.other + "/notes"} }, nil)},
		{name: "read by a handle instead of a path (`open_by_handle_at`)", root: all, rootOnly: "the call takes a capability", stage: reading(func(s *scene) []string {
			return []string{"-handle", s.home + "/public"}
		}, nil)},
		{name: "read a disk through a device that it makes", root: all, rootOnly: "making devices takes a capability", stage: func(s *scene) attempt {
			return attempt{program: []string{"device", filepath.Join(s.workspace, "zero")}}
		}},
		{name: "look at a file outside (`stat`)", root: "s", stage: func(s *scene) attempt {
			return attempt{program: []string{"stat", s.home + "/public"}}
		}},
		{name: "look into the host's state directory (`stat`)", root: "bis", user: "is", stage: func(s *scene) attempt {
			return attempt{program: []string{"stat", s.state + "/approver.key"}}
		}},
		{name: "change a file outside", root: all, stage: outside("overwrite", "home/public")},
		{name: "make a file outside", root: all, stage: outside("create", "home/new")},
		{name: "remove a file outside", root: all, stage: outside("remove", "home/public")},
		{name: "rename a file outside", root: all, stage: outside("rename", "home/public")},
		{name: "truncate a file outside", root: all, stage: outside("truncate", "home/public")},
		{name: "make a directory outside", root: all, stage: outside("mkdir", "home/new")},
		{name: "move a file out of the workspace", root: all, stage: func(s *scene) attempt {
			return attempt{program: []string{"move", filepath.Join(s.workspace, "bin/plugin"), s.home + "/new"}, happened: exists(s.home + "/new")}
		}},
		{name: "link a file outside into the workspace and change it", root: all, stage: func(s *scene) attempt {
			return attempt{
				program:  []string{"linkwrite", s.home + "/public", filepath.Join(s.workspace, "new")},
				happened: changed(s.home+"/public", s.secret),
			}
		}},
		{name: "change a file through a symbolic link in the workspace", root: all, stage: func(s *scene) attempt {
			return attempt{
				program:  []string{"symlinkwrite", s.home + "/public", filepath.Join(s.workspace, "new")},
				happened: changed(s.home+"/public", s.secret),
			}
		}},
		{name: "change the directory of another plugin of the same user", root: all, stage: outside("overwrite", "other/notes")},
		{name: "change the host's state directory", root: all, stage: outside("create", "state/new")},
		{name: "change the mode of a file outside (`chmod`)", root: all, stage: outside("chmod", "home/public")},
		{name: "change the owner of a file outside (`chown`)", root: all, stage: func(s *scene) attempt {
			t := s.t
			// An ordinary user can only give the file to itself, which removes the setuid bit.
			path := s.write("home/setuid", "", 0o600)
			must(t, unix.Chmod(path, 0o4755))
			before := modeOfFile(t, path)
			return attempt{program: []string{"chown", path}, happened: func(t *testing.T, _ string) bool {
				t.Helper()
				return modeOfFile(t, path) != before
			}}
		}},
		{name: "change the times of a file outside (`utimes`)", root: all, user: "is", stage: outside("utimes", "home/public")},
		{name: "change the attributes of a file outside (`setxattr`)", root: all, stage: outside("setxattr", "home/public")},
		{name: "make a file in `/tmp`", root: all, stage: inHosts("/tmp")},
		{name: "make a file in `/var/tmp`", root: all, stage: inHosts("/var/tmp")},
		{name: "make a file in `/dev/shm`", root: all, stage: inHosts("/dev/shm")},
		{name: "have a file handed over by a name of its own (hard link in its directory)", root: all, rootOnly: "an ordinary user hands nothing over", by: "files of several names stay whose they are", stage: func(s *scene) attempt {
			t := s.t
			must(t, os.Link(s.home+"/.ssh/id", s.own+"/id"))
			must(t, os.Symlink(s.home+"/public", s.own+"/public"))
			must(t, os.Chown(s.own, owner+1, owner+1)) // it was another's before
			return attempt{
				program: []string{"stat", s.own},
				bare: func(t *testing.T, _ []string) string {
					t.Helper()
					must(t, os.Chown(s.own+"/id", owner, owner))
					return ""
				},
				happened: func(t *testing.T, _ string) bool {
					t.Helper()
					var id, public unix.Stat_t
					must(t, unix.Stat(s.home+"/.ssh/id", &id))
					must(t, unix.Stat(s.home+"/public", &public))
					return id.Uid != 0 || public.Uid != 0
				},
			}
		}},
	}
}

// lookAt describes the file at a path, with everything about it that can be changed.
func lookAt(t *testing.T, path string) string {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return "nothing"
	}
	content, err := os.ReadFile(path)
	if err != nil {
		content = []byte(err.Error())
	}
	value := make([]byte, 64)
	n, err := unix.Getxattr(path, "user.attack", value)
	if err != nil {
		n = 0
	}
	return fmt.Sprintf("mode %#o of %d, %d, %d, %q, %q", stat.Mode, stat.Uid, stat.Size, stat.Mtim.Nano(), content, value[:n])
}

// filePrograms are the programs of fileAttacks.
func filePrograms() map[string]func(args []string) error {
	path := func(act func(path string) error) func([]string) error {
		return func(args []string) error { return act(args[0]) }
	}
	return map[string]func([]string) error{
		"read":      readSecret,
		"create":    path(func(p string) error { return os.WriteFile(p, []byte("attack"), 0o666) }),
		"overwrite": path(overwrite),
		"remove":    path(os.Remove),
		"rename":    path(func(p string) error { return os.Rename(p, p+"2") }),
		"truncate":  path(func(p string) error { return os.Truncate(p, 0) }),
		"mkdir":     path(func(p string) error { return os.Mkdir(p, 0o777) }),
		"chmod":     path(func(p string) error { return os.Chmod(p, 0o777) }),
		"chown":     path(func(p string) error { return os.Chown(p, os.Geteuid(), os.Getegid()) }),
		"utimes":    path(func(p string) error { return os.Chtimes(p, time.Unix(1, 0), time.Unix(1, 0)) }),
		"setxattr":  path(func(p string) error { return unix.Setxattr(p, "user.attack", []byte("1"), 0) }),
		"move":      func(args []string) error { return os.Rename(args[0], args[1]) },
		"stat": path(func(p string) error {
			if _, err := os.Stat(p); err != nil {
				return err
			}
			return done()
		}),
		"linkwrite": func(args []string) error {
			if err := os.Link(args[0], args[1]); err != nil {
				return err
			}
			return overwrite(args[1])
		},
		"symlinkwrite": func(args []string) error {
			if err := os.Symlink(args[0], args[1]); err != nil {
				return err
			}
			return overwrite(args[1])
		},
		"device": path(func(p string) error {
			if err := unix.Mknod(p, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
				return err
			}
			f, err := os.Open(p)
			if err != nil {
				return err
			}
			if _, err := f.Read(make([]byte, 1)); err != nil {
				return err
			}
			return done()
		}),
	}
}

func done() error {
	_, err := fmt.Fprintln(os.Stdout, "done")
	return err
}

func overwrite(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("attack")
	return err
}

// readSecret prints a file: by its path, by a link that it makes, or by a handle.
func readSecret(args []string) error {
	path := args[0]
	switch {
	case path == "-handle":
		handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, args[1], 0)
		if err != nil {
			return err
		}
		dir, err := unix.Open(".", unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		fd, err := unix.OpenByHandleAt(dir, handle, unix.O_RDONLY)
		if err != nil {
			return err
		}
		path = fmt.Sprintf("/proc/self/fd/%d", fd)
	case len(args) == 2:
		if err := os.Symlink(args[1], path); err != nil {
			return err
		}
	}
	return printFile(path)
}
