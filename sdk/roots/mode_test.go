package roots_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/sdk/roots"
)

// TestModeOfWhatIsNew checks that new files and directories are as accessible as their
// directory, whatever the umask, but that others cannot write to them.
func TestModeOfWhatIsNew(t *testing.T) {
	for _, tt := range []struct{ dir, file, below fs.FileMode }{
		{0o755, 0o644, 0o755}, {0o700, 0o600, 0o700}, {0o775, 0o664, 0o775}, {0o777, 0o664, 0o775}, {0o777 | fs.ModeSticky, 0o664, 0o775},
	} {
		for _, mask := range []int{0o022, 0o077} {
			dir := t.TempDir()
			if err := os.Chmod(dir, tt.dir); err != nil {
				t.Fatal(err)
			}
			old := syscall.Umask(mask)
			r := open(t, dir)
			target, err := r.Target("sub/file", roots.TargetOptions{Follow: true, Parents: true})
			if err == nil {
				err = target.Write([]byte("x"), roots.WriteOptions{})
				target.Close()
			}
			syscall.Umask(old)
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]fs.FileMode{"sub": tt.below, "sub/file": tt.file} {
				info, err := os.Stat(filepath.Join(dir, name))
				if err != nil || info.Mode().Perm() != want {
					t.Errorf("below %v with mask %03o: %s is %v (%v), want %v", tt.dir, mask, name, info.Mode().Perm(), err, want)
				}
			}
		}
	}
}
