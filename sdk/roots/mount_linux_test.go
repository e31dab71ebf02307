package roots_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/roots"
)

// mount mounts source at dir for the duration of the test. If that is not possible, the test
// is skipped; in CI it fails.
func mount(t *testing.T, source, dir, kind string, flags uintptr, data string) {
	t.Helper()
	if err := unix.Mount(source, dir, kind, flags, data); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("nothing can be mounted: %v", err)
		}
		t.Skipf("nothing can be mounted here, which root may do: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// TestDiskFull checks that a full file system keeps the old file and gets no other. The
// control writes in place.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	mount(t, "tmpfs", dir, "tmpfs", 0, "size=64k")
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir)
	const full = "failed: Failed to write file: no space left on device"
	for _, opts := range []roots.WriteOptions{{}, {Append: true}} {
		if got := write(r, "f", strings.Repeat("x", 100<<10), follow, opts); got != full {
			t.Errorf("Write(%+v) = %q, want %q", opts, got, full)
		}
	}
	if got := write(r, "x/y/new", strings.Repeat("x", 100<<10), parents, roots.WriteOptions{}); got != full {
		t.Errorf("Write of a new file = %q, want %q", got, full)
	}
	if diff := cmp.Diff(map[string]string{"f": "old"}, contents(t, dir)); diff != "" {
		t.Errorf("the files (-want +got):\n%s", diff)
	}
	several := targets(t, r, "new", "f", "x/other")
	unlock, err := r.Lock(t.Context(), several...)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	err = roots.ChangeAll([]roots.Change{
		{Target: several[0], Content: []byte("new")}, {Target: several[1], Content: []byte("newer")}, {Target: several[2], Content: []byte(strings.Repeat("x", 100<<10))},
	})
	if want := "failed: x/other: Failed to write file: no space left on device; nothing was done"; err == nil || err.Error() != want {
		t.Errorf("ChangeAll = %v, want %q", err, want)
	}
	if diff := cmp.Diff(map[string]string{"f": "old"}, contents(t, dir)); diff != "" {
		t.Errorf("the files after several changes (-want +got):\n%s", diff)
	}
	err = os.WriteFile(filepath.Join(dir, "f"), []byte(strings.Repeat("x", 100<<10)), 0o644)
	if got := contents(t, dir)["f"]; !errors.Is(err, unix.ENOSPC) || len(got) == 100<<10 || got == "old" {
		t.Errorf("a write in place = %v and leaves %d bytes, so the test shows nothing", err, len(got))
	}
}

// TestReadOnly checks that a read-only file system is detected before anything is tried.
func TestReadOnly(t *testing.T) {
	dir := tree(t, map[string]string{"disk/": ""})
	disk := filepath.Join(dir, "disk")
	mount(t, "tmpfs", disk, "tmpfs", 0, "size=64k")
	err := errors.Join(os.WriteFile(filepath.Join(disk, "f"), []byte("old"), 0o644), unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, dir)
	for _, name := range []string{"disk/f", "disk/new", "disk/x/y/new"} {
		target, err := r.Target(name, parents)
		if err != nil {
			t.Fatal(err)
		}
		defer target.Close()
		const want = "failed: Failed to write file: read-only file system"
		if err := target.Writable(); err == nil || err.Error() != want {
			t.Errorf("Writable(%s) = %v, want %q", name, err, want)
		}
		if target.Info() == nil {
			continue
		}
		if err := target.Removable(); err == nil || err.Error() != want {
			t.Errorf("Removable(%s) = %v, want %q", name, err, want)
		}
	}
}

// TestProtectedMountedTwice reaches a protected directory through a second mount, which its
// path does not show. The control makes the same calls without protection: all succeed.
func TestProtectedMountedTwice(t *testing.T) {
	dir := tree(t, map[string]string{"conf/host.hcl": "p", "conf/deep/x": "x", "again/": ""})
	guarded := openWith(t, roots.Options{Protected: []string{dir + "/conf/host.hcl", dir + "/conf/deep"}}, dir)
	mount(t, filepath.Join(dir, "conf"), filepath.Join(dir, "again"), "", unix.MS_BIND, "")
	attack := func(r *roots.Roots) map[string]string {
		return map[string]string{
			"write":       write(r, "again/host.hcl", "new", follow, roots.WriteOptions{}),
			"write below": write(r, "again/deep/x", "new", follow, roots.WriteOptions{}),
			"remove":      remove(r, "again/deep"),
			"move":        transfer(t, r, "again/host.hcl", "gone", roots.MoveOptions{}),
		}
	}
	for name, got := range attack(guarded) {
		if !strings.HasPrefix(got, "permission_denied: ") {
			t.Errorf("%s: %q, want it to be refused", name, got)
		}
	}
	for name, got := range attack(open(t, dir)) {
		if got != "" {
			t.Errorf("without protection, %s: %q, so the test shows nothing", name, got)
		}
	}
}

// TestMoveAcross checks that a move between mounts copies content, links, modes and times, and
// refuses FIFOs and sockets.
func TestMoveAcross(t *testing.T) {
	elsewhere := t.TempDir()
	mount(t, "tmpfs", elsewhere, "tmpfs", 0, "size=1m")
	dir := tree(t, map[string]string{"d/x": "x", "d/e/link": "-> ../x", "f": "f", "big": strings.Repeat("b", 2<<20)})
	old := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := errors.Join(os.Chmod(dir+"/d/x", 0o751), os.Chtimes(dir+"/d/x", old, old)); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir, elsewhere)
	err := errors.Join(
		os.Chtimes(dir+"/f", old, old), os.Mkdir(dir+"/pipes", 0o755), unix.Mkfifo(dir+"/pipes/fifo", 0o640), mksocket(dir+"/socket"),
	)
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"d": elsewhere + "/new/d", "f": elsewhere + "/f"} {
		if got := transfer(t, r, from, to, roots.MoveOptions{}); got != "" {
			t.Fatalf("move %s: %s", from, got)
		}
	}
	if info, err := os.Stat(elsewhere + "/f"); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("the moved file is %v, %v, want time %v", info, err, old)
	}
	for name, want := range map[string]string{"pipes": "pipes/fifo is a FIFO", "socket": "socket is a socket"} {
		if got := transfer(t, r, name, elsewhere+"/"+name, roots.MoveOptions{}); got != "failed: Failed to write file: "+want+", which cannot be copied" {
			t.Errorf("move %s: %q", name, got)
		}
	}
	want := map[string]string{
		"new/": "", "new/d/": "", "new/d/x": "x", "new/d/e/": "", "new/d/e/link": "-> ../x", "f": "f",
	}
	if diff := cmp.Diff(want, contents(t, elsewhere)); diff != "" {
		t.Errorf("the moved files (-want +got):\n%s", diff)
	}
	info, err := os.Stat(elsewhere + "/new/d/x")
	if err != nil || info.Mode().Perm() != 0o751 || !info.ModTime().Equal(old) {
		t.Errorf("the moved file is %v, %v, want mode 0751 and time %v", info, err, old)
	}
	if got := transfer(t, r, "big", elsewhere+"/big", roots.MoveOptions{}); got != "failed: Failed to write file: no space left on device" {
		t.Errorf("move of what does not fit: %q", got)
	}
	if diff := cmp.Diff([]string{"big", "pipes/", "pipes/fifo", "socket"}, slices.Sorted(maps.Keys(contents(t, dir)))); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

// TestMoveAcrossWhileChanged adds files to a directory during a move to another mount. No file
// is lost: the directory then stays where it was.
func TestMoveAcrossWhileChanged(t *testing.T) {
	elsewhere := t.TempDir()
	mount(t, "tmpfs", elsewhere, "tmpfs", 0, "size=16m")
	refused, moved := 0, 0
	for round := 0; refused == 0 || moved == 0; round++ {
		if round == 2000 {
			t.Fatalf("%d moves were refused and %d not, so the test shows nothing", refused, moved)
		}
		files := map[string]string{}
		for n := range 20 {
			files[fmt.Sprintf("d/%d", n)] = "x"
		}
		dir, to := tree(t, files), filepath.Join(elsewhere, fmt.Sprint(round))
		r := open(t, dir, elsewhere)
		var made []string
		stop, done := make(chan struct{}), make(chan struct{})
		go func() { // ends when told to, or when the directory is gone
			defer close(done)
			for n := 0; ; n++ {
				name := fmt.Sprintf("new-%d", n)
				if os.WriteFile(filepath.Join(dir, "d", name), nil, 0o600) != nil {
					return
				}
				made = append(made, name)
				pause := time.NewTimer(time.Duration(rand.Int64N(int64(time.Millisecond))))
				select {
				case <-pause.C:
				case <-stop:
					pause.Stop()
					return
				}
			}
		}()
		got := transfer(t, r, "d", to, roots.MoveOptions{})
		close(stop)
		<-done
		where, other := to, filepath.Join(dir, "d")
		if got == "" {
			moved++
		} else {
			refused++
			where, other = other, where
		}
		there := contents(t, where)
		for _, name := range append(made, "0", "19") {
			if _, ok := there[name]; !ok {
				t.Fatalf("%s is lost; the move ended with %q", name, got)
			}
		}
		if _, err := os.Lstat(other); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("%s is there, too: %v; the move ended with %q", other, err, got)
		}
	}
}
