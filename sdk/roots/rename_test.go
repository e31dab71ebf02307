package roots

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRenameNew checks that both ways to rename never replace a file.
func TestRenameNew(t *testing.T) {
	for name, rename := range map[string]func(from int, oldName string, to int, newName string) error{
		"renameNew": renameNew, "renameByLink": renameByLink,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			err := errors.Join(
				os.WriteFile(filepath.Join(dir, "file"), []byte("file"), 0o600), os.Mkdir(filepath.Join(dir, "directory"), 0o700),
				os.Symlink("nowhere", filepath.Join(dir, "link")), os.WriteFile(filepath.Join(dir, "taken"), []byte("taken"), 0o600),
				os.Symlink("nowhere", filepath.Join(dir, "taken-link")), os.Mkdir(filepath.Join(dir, "taken-directory"), 0o700),
			)
			if err != nil {
				t.Fatal(err)
			}
			d, err := os.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			fd := int(d.Fd())
			for _, old := range []string{"file", "directory", "link"} {
				for _, taken := range []string{"taken", "taken-link", "taken-directory"} {
					if err := rename(fd, old, fd, taken); !errors.Is(err, unix.EEXIST) {
						t.Errorf("rename %s to %s = %v, want %v", old, taken, err, unix.EEXIST)
					}
				}
				if err := rename(fd, old, fd, "new-"+old); err != nil {
					t.Errorf("rename %s = %v", old, err)
				}
				if _, err := os.Lstat(filepath.Join(dir, old)); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is still there: %v", old, err)
				}
			}
			if err := rename(fd, "missing", fd, "new"); !errors.Is(err, unix.ENOENT) {
				t.Errorf("rename of nothing = %v", err)
			}
			if data, err := os.ReadFile(filepath.Join(dir, "new-file")); err != nil || string(data) != "file" {
				t.Errorf("new-file holds %q, %v", data, err)
			}
		})
	}
}
