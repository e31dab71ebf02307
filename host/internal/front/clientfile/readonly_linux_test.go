package clientfile_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/host/internal/front/clientfile"
)

// TestReadOnlyDirectory changes files as an ordinary user who may not.
func TestReadOnlyDirectory(t *testing.T) {
	if os.Geteuid() == 0 { // who may do everything
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestReadOnlyDirectory$", "-test.v")
		cmd.Dir, cmd.Env = "/", []string{"TMPDIR=" + os.TempDir()}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestReadOnlyDirectory") {
			t.Errorf("as user 65534: %v\n%s", err, out)
		}
		return
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "f.json")
	if err := errors.Join(os.WriteFile(file, []byte("1"), 0o600), os.Chmod(dir, 0o500)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) }) // TempDir removes it
	for _, path := range []string{file, filepath.Join(dir, "new.json"), filepath.Join(dir, "new", "f.json")} {
		c, err := clientfile.Plan(path, 0o600, clientfile.Only(2))
		if err != nil {
			t.Fatalf("Plan(%s): %v", path, err)
		}
		if _, err := c.Write(); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("Write(%s) = %v, want that it is not permitted", path, err)
		}
	}
	left, err := os.ReadDir(dir)
	if text, _ := os.ReadFile(file); err != nil || len(left) != 1 || string(text) != "1" {
		t.Errorf("the directory has %v, %v, the file %q", left, err, text)
	}
	if err := os.Chmod(file, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := clientfile.Plan(file, 0o600, clientfile.Only(2)); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Plan of a file that cannot be read = %v", err)
	}
}
