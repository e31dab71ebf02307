package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckWriters(t *testing.T) {
	const stranger = 4711
	for _, tt := range []struct {
		name          string
		dirMode, mode os.FileMode
		want          string // of the error, with %[1]s for the directory
	}{
		{"nobody else", 0o755, 0o644, ""},
		{"nobody at all", 0o500, 0o400, ""},
		{"everybody", 0o755, 0o646, "other accounts can write %[1]s/config.hcl (mode -rw-r--rw-) and make the host run any program: chmod go-w %[1]s/config.hcl"},
		{"through the directory", 0o777, 0o600, "other accounts can write %[1]s (mode -rwxrwxrwx) and make the host run any program: chmod go-w %[1]s"},
		{"in a sticky directory", 0o777 | os.ModeSticky, 0o600, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			file, link := filepath.Join(dir, "config.hcl"), filepath.Join(t.TempDir(), "config.hcl")
			touch(t, file)
			if err := os.Symlink(file, link); err != nil {
				t.Fatal(err)
			}
			chmod(t, file, tt.mode)
			chmod(t, dir, tt.dirMode)
			t.Cleanup(func() { chmod(t, dir, 0o700) })
			for _, path := range []string{file, link} {
				err := checkWriters([]string{path}, os.Geteuid())
				if (err == nil) != (tt.want == "") {
					t.Fatalf("checkWriters(%s) = %v, want %q", path, err, tt.want)
				}
				if want := fmt.Sprintf(tt.want+"%.0[1]s", dir); err != nil && !strings.HasSuffix(err.Error(), want) {
					t.Errorf("checkWriters(%s) = %v, want %s", path, err, want)
				}
			}
		})
	}

	t.Run("another user's", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "config.hcl")
		touch(t, file)
		if os.Geteuid() == 0 { // what belongs to root is trusted by all
			if err := os.Chown(file, 1, 1); err != nil {
				t.Fatal(err)
			}
		}
		err := checkWriters([]string{file}, stranger)
		if err == nil || !strings.Contains(err.Error(), "expected root or 4711, the user of this host") {
			t.Errorf("checkWriters for another user = %v, want it refused", err)
		}
	})

	t.Run("the directory of a link", func(t *testing.T) {
		file, dir := filepath.Join(t.TempDir(), "config.hcl"), t.TempDir()
		touch(t, file)
		link := filepath.Join(dir, "config.hcl")
		if err := os.Symlink(file, link); err != nil {
			t.Fatal(err)
		}
		chmod(t, dir, 0o777)
		if err := checkWriters([]string{link}, os.Geteuid()); err == nil || !strings.HasSuffix(err.Error(), "chmod go-w "+dir) {
			t.Errorf("checkWriters of a link that others can exchange = %v, want it refused", err)
		}
	})
}

// TestCheckKeeper checks a directory, and each directory and link on its path.
func TestCheckKeeper(t *testing.T) {
	for _, tt := range []struct {
		name, dir, changed string
		mode               os.FileMode // of what is changed; 0 gives it to user 1
		want               string      // of the error
	}{
		{"nobody else", "a/b", "", 0, ""},
		{"by a link", "link/b", "", 0, ""},
		{"everybody", "a/b", "a/b", 0o702, "/a/b (mode -rwx----w-)"},
		{"everybody, sticky", "a/b", "a/b", 0o777 | os.ModeSticky, "/a/b (mode -rwxrwxrwx)"},
		{"everybody above", "a/b", "a", 0o777, "/a (mode -rwxrwxrwx)"},
		{"everybody above, sticky", "a/b", "a", 0o777 | os.ModeSticky, ""},
		{"everybody, at a link on the path", "link/b", "via", 0o777, "/via (mode -rwxrwxrwx)"},
		{"a loop", "loop", "", 0, "too many levels of symbolic links"},
		{"nothing", "none", "", 0, "no such file"},
		{"another user", "a/b", "a/b", 0, "/a/b belongs to user 1, "},
		{"another user above", "a/b", "a", 0, "/a belongs to user 1, "},
		{"another user's link", "link/b", "via/next", 0, "/via/next belongs to user 1, "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := t.TempDir()
			for _, dir := range []string{"a/b", "via"} {
				if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for link, target := range map[string]string{"link": "via/next", "via/next": "../a", "loop": "loop"} {
				if err := os.Symlink(target, filepath.Join(top, link)); err != nil {
					t.Fatal(err)
				}
			}
			switch changed := filepath.Join(top, tt.changed); {
			case tt.changed == "":
			case tt.mode != 0:
				chmod(t, changed, tt.mode)
			case os.Geteuid() != 0:
				return // only root gives files away
			default:
				if err := os.Lchown(changed, 1, 1); err != nil {
					t.Fatal(err)
				}
			}
			err := checkKeeper(filepath.Join(top, tt.dir), os.Geteuid())
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("checkKeeper(%s) = %v, want %q", tt.dir, err, tt.want)
			}
		})
	}
}

func TestOthersCanWrite(t *testing.T) {
	for _, tt := range []struct {
		name         string
		mode         os.FileMode
		owner, group int
		want         bool
	}{
		{"the owner", 0o644, 1000, 100, false},
		{"the group", 0o664, 1000, 100, true},
		{"the owner's private group", 0o664, 1000, 1000, false},
		{"root's group", 0o664, 0, 0, true},
		{"everybody", 0o646, 1000, 1000, true},
		{"a directory of the group's", 0o775 | os.ModeDir, 1000, 100, true},
		{"a sticky directory", 0o777 | os.ModeDir | os.ModeSticky, 0, 0, false},
		{"a file with the sticky bit", 0o666 | os.ModeSticky, 1000, 1000, true},
	} {
		if got := othersCanWrite(tt.mode, tt.owner, tt.group); got != tt.want {
			t.Errorf("%s: othersCanWrite(%v, %d, %d) = %v, want %v", tt.name, tt.mode, tt.owner, tt.group, got, tt.want)
		}
	}
}

// TestLoadRefusesOthers checks that every file is examined, however it was named, and that all
// bad ones are reported.
func TestLoadRefusesOthers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.hcl", "b.hcl", "c.hcl"} {
		touch(t, filepath.Join(dir, name))
	}
	chmod(t, filepath.Join(dir, "a.hcl"), 0o606)
	chmod(t, filepath.Join(dir, "c.hcl"), 0o602)
	chmod(t, dir, 0o777)
	t.Chdir(dir)
	for path, want := range map[string]string{".": ". a.hcl c.hcl", "a.hcl": ". a.hcl", "b.hcl": "."} {
		_, err := Load(path, LoadOptions{LookupEnv: lookup(nil)})
		if err == nil {
			t.Errorf("Load(%s) succeeded", path)
			continue
		}
		var got []string
		for line := range strings.Lines(err.Error()) {
			_, place, _ := strings.Cut(strings.TrimSpace(line), "chmod go-w ")
			got = append(got, place)
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("Load(%s) = %v, which names %q, want %q", path, err, got, want)
		}
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
