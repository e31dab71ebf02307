package roots_test

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/roots"
)

// openDir opens a directory until the test ends.
func openDir(t *testing.T, r *roots.Roots, name string) *roots.Dir {
	t.Helper()
	d, err := r.OpenDir(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// readIn returns the content of a file in a directory, or the error.
func readIn(d *roots.Dir, name string) string {
	f, err := d.Open(name)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

func TestDirRead(t *testing.T) {
	dir := tree(t, map[string]string{"b.txt": "", "a/z.txt": "", ".ssh/key": "", "loop": "-> .", "out": "-> /etc"})
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	entries, err := openDir(t, open(t, dir), ".").Read([]roots.DirEntry{{Name: "before"}})
	var got []string
	for _, e := range entries {
		got = append(got, e.Name+" "+roots.Kind(e.Type))
	}
	slices.Sort(got)
	want := []string{".ssh directory", "a directory", "b.txt file", "before file", "fifo FIFO", "loop symlink", "out symlink"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Read: %v (-want +got):\n%s", err, diff)
	}
}

// TestDirReadMany checks that a directory is read to its end, even if its names do not fit
// into one request, and from its beginning each time.
func TestDirReadMany(t *testing.T) {
	dir := t.TempDir()
	for i := range 3000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s%d", strings.Repeat("n", 200), i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d := openDir(t, open(t, dir), ".")
	for range 2 {
		entries, err := d.Read(nil)
		names := map[string]bool{}
		for _, e := range entries {
			names[e.Name] = true
		}
		if len(entries) != 3000 || len(names) != 3000 || err != nil {
			t.Errorf("Read gives %d entries with %d names, %v, want 3000", len(entries), len(names), err)
		}
	}
}

func TestOpenDir(t *testing.T) {
	dir := tree(t, map[string]string{"a/deep/er/x.txt": "x", "b.txt": "", ".ssh/key": "", "loop": "-> .", "out": "-> /etc"})
	other := tree(t, map[string]string{"o/p.txt": ""})
	r := open(t, dir, other)
	for _, tt := range []struct{ name, path, rel, above, err string }{
		{name: ".", path: ".", rel: "", above: ""},
		{name: "a/deep/er", path: "a/deep/er", rel: "a/deep/er", above: ". a a/deep"},
		{name: "loop/a/deep", path: "a/deep", rel: "a/deep", above: ". a"},
		{name: other + "/o", path: other + "/o", rel: "o", above: other},
		{name: "b.txt", err: "failed: Not a directory: b.txt"},
		{name: "none", err: "not_found: File not found: none"},
		{name: ".ssh", err: "permission_denied: Path not allowed by security policy: .ssh"},
		{name: "out", err: "permission_denied: Path not allowed by security policy: out"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var above []string
			d, err := r.OpenDir(tt.name, func(d *roots.Dir) { above = append(above, d.Path()) })
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Fatalf("OpenDir = %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if d.Path() != tt.path || d.Rel() != tt.rel || strings.Join(above, " ") != tt.above {
				t.Errorf("Path %q, Rel %q, above %q, want %q, %q, %q", d.Path(), d.Rel(), above, tt.path, tt.rel, tt.above)
			}
		})
	}
}

func TestDirOpen(t *testing.T) {
	outside := tree(t, map[string]string{"secret": "outside"})
	dir := tree(t, map[string]string{
		"a/x.txt": "x", "a/.env": "SECRET", "a/.env.example": "example", "a/link": "-> x.txt", "a/out": "-> " + outside, "a/sub/y.txt": "y",
	})
	if err := syscall.Mkfifo(filepath.Join(dir, "a/fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	d := openDir(t, open(t, dir), "a")
	for name, want := range map[string]string{
		"x.txt":        "x",
		".env":         "permission_denied: Path not allowed by security policy: a/.env",
		".env.example": "example",
		"link":         "failed: Failed to read file: too many symbolic links",
		"sub":          "failed: Failed to read file: it is a directory, not a regular file",
		"fifo":         "failed: Failed to read file: it is a FIFO, not a regular file",
		"none":         "not_found: File not found: a/none",
		"sub/y.txt":    "permission_denied: Path not allowed by security policy: sub/y.txt",
		"../a/x.txt":   "permission_denied: Path not allowed by security policy: ../a/x.txt",
		"..":           "permission_denied: Path not allowed by security policy: ..",
		"":             `permission_denied: Path not allowed by security policy: `,
	} {
		if got := readIn(d, name); got != want {
			t.Errorf("Open(%q): %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"out": "failed: Not a directory: a/out", "x.txt": "failed: Not a directory: a/x.txt", "..": "permission_denied: Path not allowed by security policy: ..",
	} {
		if _, err := d.OpenDir(name); err == nil || err.Error() != want {
			t.Errorf("OpenDir(%q) = %v, want %q", name, err, want)
		}
	}
	info, err := d.Info("out")
	target, targetErr := d.Target("out")
	if info.Mode.Type() != fs.ModeSymlink || target != outside || err != nil || targetErr != nil {
		t.Errorf("Info and Target of a link: %v, %q, %v, %v", info.Mode, target, err, targetErr)
	}
	if info, err := d.Info("x.txt"); info.Size != 1 || !info.Mode.IsRegular() || info.Modified.IsZero() || err != nil {
		t.Errorf("Info of a file: %+v, %v", info, err)
	}
}

// TestSecretsOnTheWayDown checks that a pattern gives the same answer level by level as for
// the whole path.
func TestSecretsOnTheWayDown(t *testing.T) {
	files := []string{"keep/.env.x", "a/.docker/config.json", "a/.docker/other", "x/y/z", "x/y/w", "X.KEY"}
	content := map[string]string{}
	for _, name := range files {
		content[name] = name
	}
	dir := tree(t, content)
	for _, secrets := range [][]string{nil, {}, {".env.*", "!keep"}, {"y/z"}, {"x/y", "!w"}, {"*.key", "!x.*"}, {"a", "!a/.docker"}, {"[x]", "z*"}} {
		r, err := roots.Open([]string{dir}, roots.Options{Secrets: secrets})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			secret := false // includes everything in a secret directory
			for i, c := range name + "/" {
				if c == '/' {
					_, err := r.Stat(name[:i])
					secret = secret || err != nil
				}
			}
			got, err := readOnTheWayDown(r, name)
			if (err != nil) != secret || err == nil && got != name {
				t.Errorf("secrets %q: %s on the way down: %q, %v, want a secret: %v", secrets, name, got, err, secret)
			}
		}
		r.Close()
	}
}

func readOnTheWayDown(r *roots.Roots, name string) (string, error) {
	d, err := r.OpenDir(".", nil)
	if err != nil {
		return "", err
	}
	parts := strings.Split(name, "/")
	for _, part := range parts[:len(parts)-1] {
		next, err := d.OpenDir(part)
		d.Close()
		if err != nil {
			return "", err
		}
		d = next
	}
	defer d.Close()
	f, err := d.Open(parts[len(parts)-1])
	if err != nil {
		return "", err
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	return string(content), err
}

// TestCloseAgain checks that closing a directory or file twice closes nothing else, since the
// number of its descriptor may already belong to another file.
func TestCloseAgain(t *testing.T) {
	dir := tree(t, map[string]string{"d/f": "text"})
	d, err := open(t, dir).OpenDir("d", nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	for _, closer := range []io.Closer{f, d} {
		if err := closer.Close(); err != nil {
			t.Error(err)
		}
	}
	others := make([]*os.File, 64)
	for i := range others {
		if others[i], err = os.Open(filepath.Join(dir, "d", "f")); err != nil {
			t.Fatal(err)
		}
		defer others[i].Close()
	}
	for _, closer := range []io.Closer{f, d} {
		if err := closer.Close(); err != nil {
			t.Errorf("closing again: %v", err)
		}
	}
	for _, other := range others {
		if text, err := io.ReadAll(other); string(text) != "text" || err != nil {
			t.Errorf("another file reads %q, %v", text, err)
		}
	}
	if _, err := f.Read(make([]byte, 1)); err == nil {
		t.Error("a closed file can be read")
	}
	if _, err := d.Open("f"); err == nil {
		t.Error("something can be opened in a closed directory")
	}
}
