package sandbox

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/tool"
)

// mounted describes the mount of a path, as a program sees it.
type mounted struct {
	Flags       []string // ro, nosuid, nodev, noexec; "tmpfs" if it is in memory
	Size, Files uint64
}

// mountPrograms report the program's view of mounts.
func mountPrograms() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"mounted": func(paths []string) error {
			seen := map[string]mounted{}
			for _, path := range paths {
				m, err := lookAtMount(path)
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if err != nil {
					return err
				}
				seen[path] = m
			}
			return json.NewEncoder(os.Stdout).Encode(seen)
		},
	}
}

func lookAtMount(path string) (mounted, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return mounted{}, err
	}
	m := mounted{Size: stat.Blocks * uint64(stat.Bsize), Files: stat.Files}
	for name, on := range map[string]bool{
		"ro": stat.Flags&unix.ST_RDONLY != 0, "nosuid": stat.Flags&unix.ST_NOSUID != 0, "nodev": stat.Flags&unix.ST_NODEV != 0,
		"noexec": stat.Flags&unix.ST_NOEXEC != 0, "tmpfs": stat.Type == unix.TMPFS_MAGIC,
	} {
		if on {
			m.Flags = append(m.Flags, name)
		}
	}
	slices.Sort(m.Flags)
	return m, nil
}

// TestListedLinks: a listed path that is a symbolic link leads to its target in each level, also where
// the program has a temporary directory of its own.
func TestListedLinks(t *testing.T) {
	removeArena(t)
	for _, level := range []Isolation{Strict, Isolated, Basic} {
		t.Run(level.String(), func(t *testing.T) {
			s := newScene(t)
			t.Cleanup(s.close)
			temporary, err := os.MkdirTemp("/tmp", "links-") //nolint:usetesting // others may enter it
			must(t, err)
			t.Cleanup(func() { must(t, os.RemoveAll(temporary)) })
			must(t, os.Chmod(temporary, 0o755))
			links := []string{temporary + "/link", s.path("link")}
			for _, link := range links {
				must(t, os.Symlink(s.home, link))
			}
			p := s.profile([]string{"attack", "mounted", links[0] + "/public", links[1] + "/public"})
			p.Confinement.Isolation, p.Confinement.Read = level, links
			proc, err := newLauncher(t).Launch(t.Context(), p)
			must(t, err)
			defer proc.closeStdio()
			out, err := io.ReadAll(proc.Stdout)
			must(t, err)
			<-proc.Done()
			for _, link := range links {
				if !strings.Contains(string(out), link+"/public") {
					t.Errorf("%s is not there; the program sees %s", link, out)
				}
			}
		})
	}
}

// TestMountsAreGoodForNothingElse: each mount allows only what it is listed for, even if other
// layers would allow more.
func TestMountsAreGoodForNothingElse(t *testing.T) {
	removeArena(t)
	// "absent" where there must be nothing; "-ro" where it must not be read-only.
	type want map[string]string
	for _, tt := range []struct {
		name string
		edit func(s *scene, p *Profile)
		want want
	}{
		{"isolated", func(_ *scene, p *Profile) { p.Confinement.Isolation = Isolated }, want{
			"/": "ro nosuid", "/usr": "ro nosuid", "/run": "tmpfs ro nosuid nodev", "HOME": "ro nosuid",
			"STATE": "tmpfs ro nosuid nodev", "STATE/approver.key": "absent", "STATE/plugin": "-ro -tmpfs nosuid nodev noexec",
			"WORKSPACE": "-ro nosuid nodev noexec", "WORKSPACE/.git/hooks": "ro nosuid nodev noexec", "WORKSPACE/bin": "ro nosuid nodev noexec",
			"OWN": "-ro nosuid nodev noexec", "TMP": "-ro tmpfs nosuid nodev noexec", "/tmp": "-ro tmpfs nosuid nodev noexec",
			"/var/tmp": "-ro tmpfs nosuid nodev noexec", "/dev/shm": "-ro tmpfs nosuid nodev noexec",
			"/proc": "ro nosuid nodev noexec", "/proc/self/exe": "ro nosuid nodev -noexec",
		}},
		{"strict", func(_ *scene, p *Profile) { p.Confinement.Isolation = Strict }, want{
			"/": "tmpfs ro nosuid nodev", "/etc/passwd": "absent", "/run": "absent", "HOME": "absent",
			"STATE": "tmpfs ro nosuid nodev", "STATE/approver.key": "absent", "STATE/plugin": "-ro -tmpfs nosuid nodev noexec",
			"WORKSPACE": "-ro nosuid nodev noexec", "WORKSPACE/.git/hooks": "ro nosuid nodev noexec", "WORKSPACE/bin": "ro nosuid nodev noexec",
			"OWN": "-ro nosuid nodev noexec", "TMP": "-ro tmpfs nosuid nodev noexec", "/tmp": "-ro tmpfs nosuid nodev noexec",
			"/var/tmp": "-ro tmpfs nosuid nodev noexec", "/dev/shm": "-ro tmpfs nosuid nodev noexec", "/dev/null": "-nodev nosuid noexec",
			"/proc": "ro nosuid nodev noexec", "/proc/self/exe": "ro nosuid nodev -noexec",
		}},
		{"may execute what it reads", func(s *scene, p *Profile) {
			p.Confinement.Isolation, p.Confinement.Exec, p.Confinement.Workspace = Strict, []string{ExecSystem, s.home}, ReadWorkspace
		}, want{
			"/usr": "ro nosuid nodev -noexec", "HOME": "ro nosuid nodev -noexec", "WORKSPACE": "ro nosuid nodev noexec", "/etc/passwd": "ro nosuid nodev noexec",
			"OWN": "-ro nosuid nodev noexec", "/tmp": "-ro tmpfs nosuid nodev noexec", "/dev/pts": "-ro nosuid noexec",
		}},
		{"may execute what it writes", func(_ *scene, p *Profile) {
			p.Confinement.Isolation, p.Confinement.Exec = Isolated, []string{ExecWorkspace, ExecTmp, ExecHome}
		}, want{
			"WORKSPACE": "-ro nosuid nodev -noexec", "WORKSPACE/.git/hooks": "ro nosuid nodev -noexec", "OWN": "-ro nosuid nodev -noexec",
			"TMP": "-ro tmpfs nosuid nodev -noexec", "/tmp": "-ro tmpfs nosuid nodev -noexec", "/dev/shm": "-ro tmpfs nosuid nodev -noexec",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			t.Cleanup(s.close)
			own := s.mkdir("state/plugin", 0o700)
			expand := strings.NewReplacer("HOME", s.home, "STATE", s.state, "WORKSPACE", s.workspace, "OWN", s.own, "TMP", s.tmp).Replace
			var paths []string
			for path := range tt.want {
				paths = append(paths, expand(path))
			}
			p := s.profile(append([]string{"attack", "mounted"}, paths...))
			p.Own = append(p.Own, own)
			tt.edit(s, &p)
			seen := mountsSeen(t, p)
			for path, flags := range tt.want {
				got, there := seen[expand(path)]
				if there == (flags == "absent") {
					t.Errorf("%s is there: %v, want %s", path, there, flags)
				}
				for flag := range strings.FieldsSeq(strings.TrimPrefix(flags, "absent")) {
					name, without := strings.CutPrefix(flag, "-")
					if slices.Contains(got.Flags, name) == without {
						t.Errorf("%s is mounted with %v, want %s", path, got.Flags, flags)
					}
				}
			}
		})
	}
}

// TestTmpIsBounded: all temporary directories share the program's bound.
func TestTmpIsBounded(t *testing.T) {
	removeArena(t)
	for _, tt := range []struct {
		name        string
		size        tool.ByteSize
		want, files uint64
	}{
		{"by default", 0, uint64(DefaultTmpSize), 4096},
		{"as is said", 16 * tool.MiB, uint64(16 * tool.MiB), 1024},
		{"less, and still some files", tool.MiB, uint64(tool.MiB), 256},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			t.Cleanup(s.close)
			places := []string{s.tmp, "/tmp", "/var/tmp", "/dev/shm"}
			p := s.profile(append([]string{"attack", "mounted"}, places...))
			p.Confinement.Isolation, p.Confinement.TmpSize = Isolated, tt.size
			seen := mountsSeen(t, p)
			for _, place := range places {
				if got := seen[place]; got.Size != tt.want || got.Files != tt.files {
					t.Errorf("%s has %d bytes, %d files, want %d, %d", filepath.Base(place), got.Size, got.Files, tt.want, tt.files)
				}
			}
		})
	}
}

// TestTmpIsItsOwn: a program that may execute files from its temporary directories still has
// private ones, and not the host's.
func TestTmpIsItsOwn(t *testing.T) {
	removeArena(t)
	for _, level := range []Isolation{Isolated, Strict} {
		t.Run(level.String(), func(t *testing.T) {
			s := newScene(t)
			t.Cleanup(s.close)
			file, err := os.CreateTemp("/tmp", "toolhost-attack-")
			must(t, err)
			t.Cleanup(func() { must(t, os.Remove(file.Name())) })
			_, err = file.WriteString(s.secret)
			must(t, err)
			must(t, file.Chmod(0o644))
			must(t, file.Close())
			out := func(program []string, edit func(p *Profile)) string {
				p := s.profile(append([]string{"attack"}, program...))
				p.Confinement.Isolation = level
				edit(&p)
				return readAll(t, started(t, newLauncher(t), p))
			}
			execTmp := func(p *Profile) { p.Confinement.Exec = []string{ExecTmp} }
			read := []string{"read", file.Name()}
			if got := out(read, func(p *Profile) { p.Confinement.Read = []string{"/tmp"} }); got != s.secret {
				t.Fatalf("control: what is listed is %q, want the host's file", got)
			}
			if got := out(read, execTmp); strings.Contains(got, s.secret) {
				t.Error("it reads the host's temporary directory")
			}
			if got := out([]string{"drop", s.tmp + "/dropped"}, execTmp); got != "done\n" {
				t.Errorf("what it has made in its temporary directory printed %q, want that it runs", got)
			}
		})
	}
}

func mountsSeen(t *testing.T, p Profile) map[string]mounted {
	t.Helper()
	var seen map[string]mounted
	must(t, json.Unmarshal([]byte(readAll(t, started(t, newLauncher(t), p))), &seen))
	return seen
}
