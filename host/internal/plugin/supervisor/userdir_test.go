package supervisor

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

// A user's directory belongs to whom the plugin's state directory belongs, so that
// a plugin that runs as another user than the host can enter it.
func TestUserDirBelongsToThePlugin(t *testing.T) {
	k, state := managerOf(t)
	owner := os.Geteuid()
	if owner == 0 {
		owner = 12345
		if err := os.Lchown(state, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	for _, user := range []string{"ada", "ada", "../ada", "Ada"} {
		dir, err := k.userDir(user)
		if err != nil {
			t.Fatalf("userDir(%q) = %v", user, err)
		}
		for _, path := range []string{dir, filepath.Dir(dir)} {
			info, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != owner || info.Mode().Perm() != 0o700 {
				t.Errorf("%s: %v, of user %d, want mode 0700 and user %d", path, info.Mode(), stat.Uid, owner)
			}
		}
	}
	if entries, err := os.ReadDir(filepath.Join(state, "users")); err != nil || len(entries) != 3 {
		t.Errorf("three users have %d directories: %v", len(entries), err)
	}
}

// A plugin that puts a link in the place of its users' directories gets nothing
// made, or given away, elsewhere.
func TestUserDirFollowsNoLink(t *testing.T) {
	k, state := managerOf(t)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(state, "users")); err != nil {
		t.Fatal(err)
	}
	if dir, err := k.userDir("ada"); err == nil {
		t.Errorf("userDir() = %s, want an error", dir)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
		t.Errorf("something was made where the link leads: %v, %v", entries, err)
	}
}

// managerOf returns the manager of a plugin and the plugin's state directory.
func managerOf(t *testing.T) (*manager, string) {
	t.Helper()
	s := keepIn(t, t.TempDir(), Plugin{Name: "calm", Path: copyProgram(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits()})
	k := s.manager("calm")
	if err := os.MkdirAll(k.stateDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	return k, k.stateDir()
}
