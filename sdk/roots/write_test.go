package roots_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// write writes as a tool would and returns the code and message of the error.
func write(r *roots.Roots, name, content string, to roots.TargetOptions, opts roots.WriteOptions) string {
	t, err := r.Target(name, to)
	if err != nil {
		return err.Error()
	}
	defer t.Close()
	unlock, err := r.Lock(context.Background(), t)
	if err != nil {
		return err.Error()
	}
	defer unlock()
	if err := t.Write([]byte(content), opts); err != nil {
		return err.Error()
	}
	return ""
}

// contents returns every file below dir with its content; directories end in a
// slash, links begin with "-> ".
func contents(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		switch {
		case d.IsDir():
			all[name+"/"] = ""
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			all[name] = "-> " + target
			return err
		case d.Type().IsRegular():
			data, err := os.ReadFile(path)
			all[name] = string(data)
			return err
		default:
			all[name] = roots.Kind(d.Type())
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

var (
	follow  = roots.TargetOptions{Follow: true}
	parents = roots.TargetOptions{Follow: true, Parents: true}
)

func TestWrite(t *testing.T) {
	const (
		denied = "permission_denied: Path not allowed by security policy: "
		failed = "failed: Failed to write file: "
	)
	outside := t.TempDir()
	files := map[string]string{
		"a.txt": "old", "sub/b.txt": "b", "empty/": "", "link": "-> a.txt", "up": "-> sub/../new.txt", "dangling": "-> not/there",
		"out": "-> " + outside, "out.txt": "-> " + outside + "/x", "absolute": "-> $DIR/sub", "loop": "-> loop", "null": "-> /dev/null",
		".git/hooks/": "", "hooks": "-> .git/hooks", ".env": "X=1", "two": "hard", "ro/": "",
	}
	long := strings.Repeat("n", 300)
	for _, tt := range []struct {
		name, path string
		to         roots.TargetOptions
		opts       roots.WriteOptions
		err        string
		at         string // where "new" is afterwards
		want       string
	}{
		{name: "new", path: "n.txt", to: follow, at: "n.txt"},
		{name: "replaced", path: "a.txt", to: follow, at: "a.txt"},
		{name: "appended", path: "a.txt", to: follow, opts: roots.WriteOptions{Append: true}, at: "a.txt", want: "oldnew"},
		{name: "appended to nothing", path: "n.txt", to: follow, opts: roots.WriteOptions{Append: true}, at: "n.txt"},
		{name: "created", path: "n.txt", to: follow, opts: roots.WriteOptions{Create: true}, at: "n.txt"},
		{name: "created over a file", path: "a.txt", to: follow, opts: roots.WriteOptions{Create: true}, err: failed + "file exists"},
		{name: "parents", path: "x/y/z/n.txt", to: parents, at: "x/y/z/n.txt"},
		{name: "no parents", path: "x/y/n.txt", to: follow, err: "not_found: File not found: x/y"},
		{name: "behind a link", path: "link", to: follow, at: "a.txt"},
		{name: "link not followed", path: "link", err: failed + "it is a symlink, not a regular file"},
		{name: "behind a link to nothing", path: "up", to: follow, at: "new.txt"},
		{name: "behind a link to nothing at all", path: "dangling", to: parents, at: "not/there"},
		{name: "absolute link inside", path: "absolute/n.txt", to: follow, at: "sub/n.txt"},
		{name: "dots", path: "sub/../n.txt", to: follow, at: "n.txt"},

		{name: "outside", path: "../n.txt", to: parents, err: denied + "../n.txt"},
		{name: "absolute outside", path: outside + "/n.txt", to: parents, err: denied + outside + "/n.txt"},
		{name: "behind a link out", path: "out/n.txt", to: parents, err: denied + "out/n.txt"},
		{name: "behind a link to a file outside", path: "out.txt", to: parents, err: denied + "out.txt"},
		{name: "device behind a link", path: "null", to: follow, err: denied + "null"},
		{name: "loop", path: "loop", to: follow, err: failed + "too many symbolic links"},
		{name: "secret", path: ".env", to: follow, err: denied + ".env"},
		{name: "new secret", path: "x/id_rsa", to: parents, err: denied + "x/id_rsa"},
		{name: "hook", path: ".git/hooks/pre-commit", to: parents, err: denied + ".git/hooks/pre-commit"},
		{name: "hook behind a link", path: "hooks/pre-commit", to: parents, err: denied + ".git/hooks/pre-commit"},
		{name: "hook in another case", path: "sub/.GIT/Hooks/x", to: parents, err: denied + "sub/.GIT/Hooks/x"},
		{name: "directory", path: "sub", to: follow, err: failed + "it is a directory, not a regular file"},
		{name: "the folder", path: ".", to: follow, err: failed + "it is a directory, not a regular file"},
		{name: "below a file", path: "a.txt/n.txt", to: parents, err: failed + "not a directory"},
		{name: "FIFO", path: "fifo", to: follow, err: failed + "it is a FIFO, not a regular file"},
		{name: "below a FIFO", path: "fifo/n.txt", to: parents, err: failed + "not a directory"},
		{name: "socket", path: "socket", to: follow, err: failed + "it is a socket, not a regular file"},
		{name: "hard link", path: "two", to: follow, err: failed + "it has 2 hard links, and a change would reach only one of them"},
		{name: "long name", path: long, to: follow, err: failed + "file name too long"},
		{name: "long parent", path: long + "/n.txt", to: parents, err: failed + "file name too long"},
		{name: "long path", path: strings.Repeat("d/", 2048), to: parents, err: "invalid_argument: the path is 4096 bytes long, the maximum is 4095"},
		{name: "NUL", path: "a\x00", to: parents, err: denied + `"a\x00"`},
		{name: "none", path: "", to: parents, err: "invalid_argument: the path is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := tree(t, files)
			err := errors.Join(
				syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644), mksocket(filepath.Join(dir, "socket")),
				os.Link(filepath.Join(dir, "two"), filepath.Join(dir, "too")),
			)
			if err != nil {
				t.Fatal(err)
			}
			want := contents(t, dir)
			if got := write(open(t, dir), tt.path, "new", tt.to, tt.opts); got != tt.err {
				t.Fatalf("Write(%.60q) = %q, want %q", tt.path, got, tt.err)
			}
			if tt.err == "" {
				want[tt.at] = "new"
				if tt.want != "" {
					want[tt.at] = tt.want
				}
				for d := filepath.Dir(tt.at); d != "."; d = filepath.Dir(d) {
					want[d+"/"] = ""
				}
			}
			if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
				t.Errorf("the files (-want +got):\n%s", diff)
			}
			if left := contents(t, outside); len(left) > 0 {
				t.Errorf("there is something outside: %v", left)
			}
		})
	}
}

func TestWriteKeepsModeAndOwner(t *testing.T) {
	dir := tree(t, map[string]string{"script": "old"})
	path := filepath.Join(dir, "script")
	if err := os.Chmod(path, 0o751); err != nil {
		t.Fatal(err)
	}
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 { // only root can give a file away
		uid, gid = 1234, 4321
		if err := errors.Join(os.Chown(path, uid, gid), os.Chmod(path, 0o751|fs.ModeSetuid)); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := write(open(t, dir), "script", "new", follow, roots.WriteOptions{}); got != "" {
		t.Fatal(got)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != before.Mode() {
		t.Errorf("mode = %v, want %v", info.Mode(), before.Mode())
	}
	if os.SameFile(before, info) {
		t.Error("the file was written in place, want a new one in its place")
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != uid || int(stat.Gid) != gid {
		t.Errorf("owner = %+v, want %d:%d", stat, uid, gid)
	}
}

// TestWriteNewMode checks that a new file has the usual mode.
func TestWriteNewMode(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "like"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if got := write(open(t, dir), "new", "", follow, roots.WriteOptions{}); got != "" {
		t.Fatal(got)
	}
	like, err := os.Stat(filepath.Join(dir, "like"))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "new")); err != nil || info.Mode() != like.Mode() {
		t.Errorf("mode = %v, %v, want %v", info.Mode(), err, like.Mode())
	}
}

// TestCreateOnce checks that of many writers that create the same file, only one succeeds,
// even if they share only the file system, and that its content is complete. In the control,
// which checks before it writes, several succeed.
func TestCreateOnce(t *testing.T) {
	dir := t.TempDir()
	const writers = 16
	for round := range 20 {
		name := "f" + string(rune('a'+round))
		results := make([]string, writers)
		var wg sync.WaitGroup
		for n := range results {
			r := open(t, dir)
			wg.Go(func() { // ends with its write
				results[n] = write(r, name, strings.Repeat(string(rune('A'+n)), 100), follow, roots.WriteOptions{Create: true})
			})
		}
		wg.Wait()
		winner := -1
		for n, got := range results {
			switch {
			case got == "" && winner < 0:
				winner = n
			case got == "":
				t.Fatalf("writers %d and %d have both created %s", winner, n, name)
			case !strings.HasPrefix(got, "conflict: "+name) && got != "failed: Failed to write file: file exists":
				t.Errorf("writer %d: %s", n, got)
			}
		}
		if winner < 0 {
			t.Fatalf("nobody has created %s: %q", name, results)
		}
		if got := contents(t, dir)[name]; got != strings.Repeat(string(rune('A'+winner)), 100) {
			t.Errorf("%s holds %q, but %c has created it", name, got, 'A'+winner)
		}
	}
	if got := len(contents(t, dir)); got != 20 {
		t.Errorf("%d files are left, want 20: %v", got, contents(t, dir))
	}

	var created atomic.Int32
	var looked, wg sync.WaitGroup
	looked.Add(writers)
	path := filepath.Join(dir, "control")
	for n := range writers {
		wg.Go(func() { // ends with its write
			_, err := os.Lstat(path)
			looked.Done()
			looked.Wait()
			if errors.Is(err, os.ErrNotExist) && os.WriteFile(path, []byte{'A' + byte(n)}, 0o600) == nil {
				created.Add(1)
			}
		})
	}
	wg.Wait()
	if created.Load() < 2 {
		t.Errorf("in the control %d have created the file, so the test shows nothing", created.Load())
	}
}

// TestWriteConflict checks that a write between check and change is not lost.
func TestWriteConflict(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before string // "" means none
		meddle func(path string) error
	}{
		{"edited", "old", func(path string) error { return os.WriteFile(path, []byte("theirs"), 0o644) }},
		{"created", "", func(path string) error { return os.WriteFile(path, []byte("theirs"), 0o644) }},
		{"removed", "old", os.Remove},
		{"a link", "old", func(path string) error { return errors.Join(os.Remove(path), os.Symlink("other", path)) }},
		{"a directory", "", func(path string) error { return os.Mkdir(path, 0o755) }},
		{"mode", "old", func(path string) error { return os.Chmod(path, 0o600) }},
		{"edited and dated back", "old", func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return errors.Join(os.WriteFile(path, []byte("new"), 0o644), os.Chtimes(path, info.ModTime(), info.ModTime()))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := tree(t, map[string]string{"other": "other"})
			path := filepath.Join(dir, "f")
			if tt.before != "" {
				if err := os.WriteFile(path, []byte(tt.before), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			target, err := open(t, dir).Target("f", follow)
			if err != nil {
				t.Fatal(err)
			}
			defer target.Close()
			if err := tt.meddle(path); err != nil {
				t.Fatal(err)
			}
			want := contents(t, dir)
			if got := tool.AsError(target.Write([]byte("ours"), roots.WriteOptions{})); got == nil || got.Code != tool.Conflict {
				t.Errorf("Write = %v, want a conflict", got)
			}
			if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
				t.Errorf("the files (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTemporaryIsPrivate checks that only a file's owner can read its temporary file.
func TestTemporaryIsPrivate(t *testing.T) {
	dir := tree(t, map[string]string{"private": "old"})
	if err := os.Chmod(filepath.Join(dir, "private"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir)
	target, err := r.Target("private", follow)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	seen := false
	done := make(chan struct{})
	go func() { // ends with the write
		defer close(done)
		if err := target.Write(make([]byte, 32<<20), roots.WriteOptions{}); err != nil {
			t.Errorf("Write = %v", err)
		}
	}()
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if info, err := e.Info(); err == nil && e.Name() != "private" {
				seen = true
				if info.Mode().Perm()&0o077 != 0 {
					t.Errorf("%s has the mode %v", e.Name(), info.Mode())
				}
			}
		}
		select {
		case <-done:
			if !seen {
				t.Error("no temporary file was seen, so the test shows nothing")
			}
			return
		default:
		}
	}
}
