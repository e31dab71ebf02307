package roots_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/roots"
)

func openWith(tb testing.TB, opts roots.Options, dirs ...string) *roots.Roots {
	tb.Helper()
	r, err := roots.Open(dirs, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.Close() })
	return r
}

// transfer moves or copies as a tool would.
func transfer(tb testing.TB, r *roots.Roots, from, to string, opts roots.MoveOptions) string {
	tb.Helper()
	source, err := r.Target(from, roots.TargetOptions{Follow: opts.Copy, Read: opts.Copy})
	if err != nil {
		return err.Error()
	}
	defer source.Close()
	dest, err := r.Target(to, roots.TargetOptions{Parents: true})
	if err != nil {
		return err.Error()
	}
	defer dest.Close()
	unlock, err := r.Lock(tb.Context(), source, dest)
	if err != nil {
		return err.Error()
	}
	defer unlock()
	if err := source.MoveTo(tb.Context(), dest, opts); err != nil {
		return err.Error()
	}
	return ""
}

func remove(r *roots.Roots, name string) string {
	t, err := r.Target(name, roots.TargetOptions{})
	if err != nil {
		return err.Error()
	}
	defer t.Close()
	if err := t.Remove(); err != nil {
		return err.Error()
	}
	return ""
}

func mkdir(r *roots.Roots, name string) string {
	t, err := r.Target(name, parents)
	if err != nil {
		return err.Error()
	}
	defer t.Close()
	if _, err := t.MakeDirectory(); err != nil {
		return err.Error()
	}
	return ""
}

func TestMoveAndCopy(t *testing.T) {
	const failed = "failed: Failed to write file: "
	files := map[string]string{
		"a.txt": "a", "b.txt": "b", "dir/c.txt": "c", "dir/in/link": "-> ../c.txt", "dir/in/out": "-> /etc", "empty/": "", "link": "-> a.txt",
		"docker/config.json": "{}", "proj/.env": "X", "proj/m.go": "m",
	}
	for _, tt := range []struct {
		name, from, to string
		opts           roots.MoveOptions
		err            string
		want           map[string]string // files added; an empty value means a removed file
		gone           []string
	}{
		{name: "file", from: "a.txt", to: "x/y/new", want: map[string]string{"x/": "", "x/y/": "", "x/y/new": "a"}, gone: []string{"a.txt"}},
		{name: "over a file", from: "a.txt", to: "b.txt", opts: roots.MoveOptions{Overwrite: true}, want: map[string]string{"b.txt": "a"}, gone: []string{"a.txt"}},
		{name: "over a file unasked", from: "a.txt", to: "b.txt", err: failed + "file exists"},
		{name: "directory", from: "dir", to: "new", want: map[string]string{"new/": "", "new/c.txt": "c", "new/in/": "", "new/in/link": "-> ../c.txt", "new/in/out": "-> /etc"}, gone: []string{"dir/", "dir/c.txt", "dir/in/", "dir/in/link", "dir/in/out"}},
		{name: "a link itself", from: "link", to: "l2", want: map[string]string{"l2": "-> a.txt"}, gone: []string{"link"}},
		{name: "into itself", from: "dir", to: "dir/in/x", err: "invalid_argument: dest is in the directory that is to be copied or moved: dir/in/x"},
		{name: "onto itself", from: "a.txt", to: "./a.txt", opts: roots.MoveOptions{Overwrite: true}, err: "invalid_argument: source and dest are the same: a.txt"},
		{name: "onto a directory", from: "a.txt", to: "empty", opts: roots.MoveOptions{Overwrite: true}, err: failed + "file exists"},
		{name: "directory onto a file", from: "dir", to: "a.txt", opts: roots.MoveOptions{Overwrite: true}, err: failed + "file exists"},
		{name: "onto a link", from: "b.txt", to: "link", opts: roots.MoveOptions{Overwrite: true}, err: failed + "it is a symlink, not a regular file"},
		{name: "nothing", from: "nothing", to: "x", err: "not_found: File not found: nothing"},
		{name: "out", from: "a.txt", to: "../a.txt", err: "permission_denied: Path not allowed by security policy: ../a.txt"},
		{name: "to a secret", from: "a.txt", to: ".env", err: "permission_denied: Path not allowed by security policy: .env"},
		{name: "the folder", from: ".", to: "x", err: "invalid_argument: dest is in the directory that is to be copied or moved: x"},
		{name: "the folder's parent", from: "..", to: "x", err: "permission_denied: Path not allowed by security policy: .."},
		{name: "a secret inside", from: "proj", to: "p", want: map[string]string{"p/": "", "p/.env": "X", "p/m.go": "m"}, gone: []string{"proj/", "proj/.env", "proj/m.go"}},
		{name: "makes a secret", from: "docker", to: ".docker", err: "permission_denied: Path not allowed by security policy: docker/config.json"},

		{name: "copy", from: "a.txt", to: "x/y/new", opts: roots.MoveOptions{Copy: true}, want: map[string]string{"x/": "", "x/y/": "", "x/y/new": "a"}},
		{name: "copy over a file", from: "a.txt", to: "b.txt", opts: roots.MoveOptions{Copy: true, Overwrite: true}, want: map[string]string{"b.txt": "a"}},
		{name: "copy over a file unasked", from: "a.txt", to: "b.txt", opts: roots.MoveOptions{Copy: true}, err: failed + "file exists"},
		{name: "copy a directory", from: "dir", to: "new/er", opts: roots.MoveOptions{Copy: true}, want: map[string]string{"new/": "", "new/er/": "", "new/er/c.txt": "c", "new/er/in/": "", "new/er/in/link": "-> ../c.txt", "new/er/in/out": "-> /etc"}},
		{name: "copy what a link leads to", from: "link", to: "l2", opts: roots.MoveOptions{Copy: true}, want: map[string]string{"l2": "a"}},
		{name: "copy a secret inside", from: "proj", to: "p", opts: roots.MoveOptions{Copy: true}, want: map[string]string{"p/": "", "p/.env": "X", "p/m.go": "m"}},
		{name: "copy into itself", from: "dir", to: "dir/x", opts: roots.MoveOptions{Copy: true}, err: "invalid_argument: dest is in the directory that is to be copied or moved: dir/x"},
		{name: "copy a FIFO", from: "pipes", to: "x", opts: roots.MoveOptions{Copy: true}, err: failed + "pipes/fifo is a FIFO, which cannot be copied"},
		{name: "move a FIFO", from: "pipes", to: "x", want: map[string]string{"x/": "", "x/fifo": "FIFO"}, gone: []string{"pipes/", "pipes/fifo"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := tree(t, files)
			if err := errors.Join(os.Mkdir(dir+"/pipes", 0o755), syscall.Mkfifo(dir+"/pipes/fifo", 0o644)); err != nil {
				t.Fatal(err)
			}
			want := contents(t, dir)
			if got := transfer(t, open(t, dir), tt.from, tt.to, tt.opts); got != tt.err {
				t.Fatalf("got %q, want %q", got, tt.err)
			}
			maps.Copy(want, tt.want)
			for _, name := range tt.gone {
				delete(want, name)
			}
			if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
				t.Errorf("the files (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSecretsStaySecret checks that moving a directory cannot make a secret in it readable.
func TestSecretsStaySecret(t *testing.T) {
	for _, opts := range []roots.MoveOptions{{}, {Copy: true}} {
		dir := tree(t, map[string]string{".docker/config.json": "token", ".docker/other": "o", ".config/gh/hosts.yml": "token"})
		r := open(t, dir)
		for _, name := range []string{".docker", ".config"} {
			if got := transfer(t, r, name, "plain", opts); !strings.HasPrefix(got, "permission_denied: ") {
				t.Errorf("transfer(%s, %+v) = %q, want it to be refused", name, opts, got)
			}
		}
		if got := len(contents(t, dir)); got != 6 {
			t.Errorf("%d files, want 6: %v", got, contents(t, dir))
		}
		control := openWith(t, roots.Options{Secrets: []string{}}, dir)
		if got := transfer(t, control, ".docker", "plain", opts); got != "" || read(r, "plain/config.json") != "token" {
			t.Errorf("without secrets: %q, %q, so the test shows nothing", got, read(r, "plain/config.json"))
		}
	}
}

func TestRemove(t *testing.T) {
	outside := tree(t, map[string]string{"keep": "k"})
	dir := tree(t, map[string]string{"a.txt": "a", "d/b": "b", "d/out": "-> " + outside, "link": "-> " + outside, "dangling": "-> none"})
	r := open(t, dir)
	for _, tt := range []struct{ name, want string }{
		{"a.txt", ""},
		{"link", ""},
		{"dangling", ""},
		{"d", ""},
		{"d", "not_found: File not found: d"},
		{".", "permission_denied: Path not allowed by security policy: ."},
		{outside, "permission_denied: Path not allowed by security policy: " + outside},
	} {
		if got := remove(r, tt.name); got != tt.want {
			t.Errorf("Remove(%s) = %q, want %q", tt.name, got, tt.want)
		}
	}
	if left := contents(t, dir); len(left) > 0 {
		t.Errorf("what is left: %v", left)
	}
	if got := contents(t, outside)["keep"]; got != "k" {
		t.Error("a link was followed")
	}
}

// TestRemoveFolder checks that a folder cannot be removed as a directory of another folder.
func TestRemoveFolder(t *testing.T) {
	dir := tree(t, map[string]string{"x/inner/f": "f", "y/f": "f"})
	r := open(t, dir, dir+"/x/inner")
	for _, name := range []string{"x/inner", "x", dir + "/x/inner"} {
		if got := remove(r, name); !strings.HasPrefix(got, "permission_denied: ") {
			t.Errorf("Remove(%s) = %q, want it to be refused", name, got)
		}
	}
	if got := remove(r, "y"); got != "" {
		t.Error(got)
	}
}

// TestReadTarget checks that a target for reading cannot be changed.
func TestReadTarget(t *testing.T) {
	dir := tree(t, map[string]string{"a": "a", ".git/config": "c"})
	r := open(t, dir)
	read := roots.TargetOptions{Read: true, Parents: true, Follow: true}
	for _, name := range []string{"a", "new", ".git/config", ".git/hooks/new"} {
		if got := write(r, name, "x", read, roots.WriteOptions{}); !strings.HasPrefix(got, "permission_denied: ") {
			t.Errorf("Write(%s) = %q, want it to be refused", name, got)
		}
	}
	if got := len(contents(t, dir)); got != 3 {
		t.Errorf("%d files, want 3: %v", got, contents(t, dir))
	}
}

func TestContents(t *testing.T) {
	dir := tree(t, map[string]string{"d/a": "12345", "d/b/c": "123", "d/link": "-> a"})
	r := open(t, dir)
	look := func() roots.Contents {
		target, err := r.Target("d", roots.TargetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer target.Close()
		var seen []string
		c, err := target.Contents(t.Context(), func(rel string, _ fs.FileInfo) { seen = append(seen, rel) })
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{".", "a", "b", "b/c", "link"}, seen); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
		return c
	}
	first := look()
	if first.Files != 2 || first.Directories != 2 || first.Others != 1 || first.Bytes != 8 {
		t.Errorf("Contents = %+v, want 2 files, 2 directories, 1 other, 8 bytes", first)
	}
	if diff := cmp.Diff(first, look()); diff != "" {
		t.Errorf("the second time (-first +second):\n%s", diff)
	}
	path := filepath.Join(dir, "d/b/c")
	for name, change := range map[string]func() error{
		"size": func() error { return os.WriteFile(path, []byte("1234"), 0o644) },
		"time": func() error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) },
		"mode": func() error { return os.Chmod(path, 0o600) },
		"link": func() error {
			return errors.Join(os.Remove(dir+"/d/link"), os.Symlink("b", dir+"/d/link"))
		},
	} {
		before := look()
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if cmp.Equal(before.Digest, look().Digest) {
			t.Errorf("another %s has the same digest", name)
		}
	}
	target, err := r.Target("d", roots.TargetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := target.Contents(ended, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Contents with an ended context = %v", err)
	}
}
