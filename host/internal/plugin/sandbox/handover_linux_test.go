package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
)

// TestHandOver: the files that a program owns become its user's, and no others do. Otherwise a
// plugin could make the host give it a file of root's.
func TestHandOver(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"own", "own/below", "tmp", "elsewhere"} {
		must(t, os.Mkdir(path(name), 0o700))
	}
	for _, name := range []string{"own/file", "own/below/file", "tmp/file", "elsewhere/shadow", "elsewhere/passwd", "elsewhere/linked"} {
		must(t, os.WriteFile(path(name), nil, 0o600))
	}
	// Files that the plugin may have left there in an earlier run.
	must(t, os.Link(path("elsewhere/linked"), path("own/linked")))
	must(t, os.Symlink("../elsewhere/shadow", path("own/out")))
	must(t, os.Symlink(path("elsewhere/passwd"), path("own/absolute")))
	must(t, os.Symlink("linked", path("own/in")))
	must(t, os.Symlink("nowhere", path("own/broken")))
	must(t, os.Symlink("../elsewhere", path("own/dir")))

	given := []string{
		"own", "own/file", "own/below", "own/below/file", "own/out", "own/absolute", "own/in", "own/broken", "own/dir", "tmp", "tmp/file",
	}
	kept := []string{".", "own/linked", "elsewhere", "elsewhere/shadow", "elsewhere/passwd", "elsewhere/linked"}
	host := launch.User{UID: os.Geteuid(), GID: os.Getegid()}
	other := launch.User{UID: owner, GID: owner + 1}
	if os.Geteuid() != 0 {
		other = host // an ordinary user can give nothing away, and does not try to
	}
	for _, tt := range []struct {
		name string
		user *launch.User
		want launch.User
	}{
		{"to a user of its own", &launch.User{UID: owner, GID: owner + 1}, other},
		{"to the same user again", &launch.User{UID: owner, GID: owner + 1}, other},
		{"back to the host's", nil, host},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan := &plan{profile: &Profile{Own: []string{path("own")}, Tmp: path("tmp")}, user: tt.user}
			must(t, new(Launcher).handOver(t.Context(), plan))
			for _, of := range []struct {
				names []string
				want  launch.User
			}{{given, tt.want}, {kept, host}} {
				for _, name := range of.names {
					var stat unix.Stat_t
					must(t, unix.Lstat(path(name), &stat))
					if int(stat.Uid) != of.want.UID || int(stat.Gid) != of.want.GID {
						t.Errorf("%s is of user %d, group %d, want %d, %d", name, stat.Uid, stat.Gid, of.want.UID, of.want.GID)
					}
				}
			}
		})
	}
}

// If a directory cannot be handed over, the program is not started: it could not use its own
// files.
func TestHandOverFails(t *testing.T) {
	plan := &plan{profile: &Profile{Own: []string{filepath.Join(t.TempDir(), "none")}}, user: &launch.User{UID: owner, GID: owner}}
	if err := new(Launcher).handOver(t.Context(), plan); (err == nil) != (os.Geteuid() != 0) {
		t.Errorf("handOver() = %v, want an error of root's only", err)
	}
}

// TestGiveAway gives away the directory that was opened, whatever is in its place now.
func TestGiveAway(t *testing.T) {
	if os.Geteuid() != 0 {
		return // only root gives files away
	}
	top := t.TempDir()
	path := func(name string) string { return filepath.Join(top, name) }
	for _, name := range []string{"ws", "ws/new", "ws/other", "victim"} {
		must(t, os.Mkdir(path(name), 0o700))
	}
	must(t, os.WriteFile(path("ws/new/file"), nil, 0o600))
	must(t, os.WriteFile(path("victim/file"), nil, 0o600))
	taken := freeUser(path("ws/ada"), path("ws/ada"))
	must(t, os.Chown(path("ws/other"), taken, taken))
	dir, err := os.OpenRoot(path("ws/new"))
	must(t, err)
	defer dir.Close()
	must(t, os.Rename(path("ws/new"), path("ws/moved")))
	must(t, os.Symlink("../victim", path("ws/new")))
	must(t, GiveAway(t.Context(), dir, path("ws/ada")))
	given, err := ownerOf(path("ws/moved"))
	must(t, err)
	if given.UID < firstUser || given.UID >= firstUser+users || given.UID == taken {
		t.Errorf("the directory belongs to %d, want a user of its own", given.UID)
	}
	for name, want := range map[string]int{"ws/moved/file": given.UID, "ws": 0, "victim": 0, "victim/file": 0} {
		if owner, err := ownerOf(path(name)); err != nil || owner.UID != want {
			t.Errorf("%s belongs to %d, %v, want %d", name, owner.UID, err, want)
		}
	}
}
