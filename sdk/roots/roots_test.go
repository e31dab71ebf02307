package roots_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// tree creates files in a new directory. A name that ends in a slash is a directory, and the
// content "-> x" a symbolic link to x.
func tree(tb testing.TB, files map[string]string) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		var err error
		switch target, isLink := strings.CutPrefix(content, "-> "); {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		case isLink:
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(strings.ReplaceAll(target, "$DIR", dir), path))
		default:
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644))
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

func open(tb testing.TB, dirs ...string) *roots.Roots {
	tb.Helper()
	r, err := roots.Open(dirs, roots.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.Close() })
	return r
}

// read returns the content of a file, or the code and message of the error.
func read(r *roots.Roots, name string) string {
	f, err := r.Open(name)
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

func TestOpen(t *testing.T) {
	outside := tree(t, map[string]string{"secret.txt": "outside"})
	other := tree(t, map[string]string{"o.txt": "other"})
	dir := tree(t, map[string]string{
		"a.txt":            "a",
		"sub/b.txt":        "b",
		"empty/":           "",
		".env":             "PASSWORD=1",
		".env.example":     "PASSWORD=",
		"home/.SSH/id":     "key",
		"link":             "-> a.txt",
		"sub/up":           "-> ../a.txt",
		"sub/dir":          "-> ../sub",
		"absolute":         "-> $DIR/sub/b.txt",
		"across":           "-> " + other + "/o.txt",
		"out":              "-> ../../../../../../../../etc/passwd",
		"out-absolute":     "-> /etc/passwd",
		"out-dir":          "-> " + outside,
		"proc":             "-> /proc/self/environ",
		"loop":             "-> loop",
		"harmless":         "-> .env",
		".env.local":       "-> a.txt",
		"dangling":         "-> nothing",
		"caf\xe9.txt":      "latin1 name",
		"sub/deep/er/c.md": "c",
	})
	for name, make := range map[string]func(string) error{
		"fifo":   func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"socket": func(path string) error { return mksocket(path) },
	} {
		if err := make(filepath.Join(dir, name)); err != nil {
			t.Fatalf("make %s: %v", name, err)
		}
	}
	r := open(t, dir, other)

	const (
		denied = "permission_denied: Path not allowed by security policy: "
		none   = "not_found: File not found: "
		failed = "failed: Failed to read file: "
	)
	long := strings.Repeat("n", 300)
	for _, tt := range []struct{ name, want string }{
		{"a.txt", "a"},
		{"./sub//b.txt", "b"},
		{"sub/../a.txt", "a"},
		{dir + "/a.txt", "a"},
		{dir + "/sub/../a.txt", "a"},
		{other + "/o.txt", "other"},
		{"caf\xe9.txt", "latin1 name"},
		{"link", "a"},
		{"sub/up", "a"},
		{"sub/dir/dir/dir/b.txt", "b"},
		{"absolute", "b"},
		{"across", "other"},
		{".env.example", "PASSWORD="},

		{"missing.txt", none + "missing.txt"},
		{"a.txt/below", none + "a.txt/below"},
		{"dangling", none + "dangling"},
		{"missing\xff", none + `"missing\xff"`},
		{"missing\n\x1b[2J", none + `"missing\n\x1b[2J"`},
		{"../\u202egnp.sh", denied + `"../\u202egnp.sh"`},

		{"..", denied + ".."},
		{"../a.txt", denied + "../a.txt"},
		{"sub/../../a.txt", denied + "sub/../../a.txt"},
		{"../" + filepath.Base(dir) + "/a.txt", denied + "../" + filepath.Base(dir) + "/a.txt"},
		{"/etc/passwd", denied + "/etc/passwd"},
		{"/", denied + "/"},
		{dir + "/../x", denied + dir + "/../x"},
		{dir + "x/a.txt", denied + dir + "x/a.txt"},
		{"/proc/self/environ", denied + "/proc/self/environ"},
		{"/proc/self/root/etc/passwd", denied + "/proc/self/root/etc/passwd"},
		{"/dev/zero", denied + "/dev/zero"},
		{"proc", denied + "proc"},
		{"out", denied + "out"},
		{"out-absolute", denied + "out-absolute"},
		{"out-dir/secret.txt", denied + "out-dir/secret.txt"},
		{"a.txt\x00.png", denied + `"a.txt\x00.png"`},

		{".env", denied + ".env"},
		{"harmless", denied + "harmless"},
		{".env.local", denied + ".env.local"},
		{"home/.SSH/id", denied + "home/.SSH/id"},

		{"fifo", failed + "it is a FIFO, not a regular file"},
		{"socket", failed + "it is a socket, not a regular file"},
		{"empty", failed + "it is a directory, not a regular file"},
		{".", failed + "it is a directory, not a regular file"},
		{"loop", failed + "too many symbolic links"},
		{long, failed + "file name too long"},
		{"", "invalid_argument: the path is empty"},
		{strings.Repeat("d/", 2048), "invalid_argument: the path is 4096 bytes long, the maximum is 4095"},
	} {
		t.Run(strings.ToValidUTF8(tt.name[:min(len(tt.name), 40)], "?"), func(t *testing.T) {
			if got := read(r, tt.name); got != tt.want {
				t.Errorf("Open(%q) = %q, want %q", tt.name, got, tt.want)
			}
		})
	}
}

func mksocket(path string) error {
	return unix.Mknod(path, unix.S_IFSOCK|0o644, 0)
}

// TestHintNamesNoFolder checks that no hint names a folder of the host.
func TestHintNamesNoFolder(t *testing.T) {
	_, err := open(t, tree(t, nil), tree(t, nil)).Open("/etc/passwd")
	var told *tool.Error
	if !errors.As(err, &told) {
		t.Fatalf("Open = %v, want a *tool.Error", err)
	}
	want := "use a path relative to the workspace"
	if told.Hint != want {
		t.Errorf("hint = %q, want %q", told.Hint, want)
	}
}

func TestOpenRootsMistakes(t *testing.T) {
	dir := tree(t, map[string]string{"file": ""})
	for _, tt := range []struct {
		name string
		dirs []string
		opts roots.Options
		want string
	}{
		{"none", nil, roots.Options{}, "no folder given"},
		{"relative", []string{"work"}, roots.Options{}, `open root "work": not an absolute path`},
		{"missing", []string{dir + "/missing"}, roots.Options{}, "no such file"},
		{"file", []string{dir, dir + "/file"}, roots.Options{}, "not a directory"},
		{"pattern", []string{dir}, roots.Options{Secrets: []string{"ok", "[x"}}, `secret pattern "[x" is not a glob`},
		{"empty pattern", []string{dir}, roots.Options{Secrets: []string{"!"}}, `secret pattern "!" is not a glob`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := roots.Open(tt.dirs, tt.opts)
			if err == nil {
				r.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Open(%q) = %v, want an error with %q", tt.dirs, err, tt.want)
			}
		})
	}
}

// TestRootBehindLink opens the workspace through a symbolic link: callers may use either name.
func TestRootBehindLink(t *testing.T) {
	dir := tree(t, map[string]string{"real/a.txt": "a", "ws": "-> real"})
	r := open(t, dir+"/ws")
	for _, name := range []string{"a.txt", dir + "/ws/a.txt", dir + "/real/a.txt"} {
		if got := read(r, name); got != "a" {
			t.Errorf("Open(%q) = %q, want %q", name, got, "a")
		}
	}
}

func TestDisplay(t *testing.T) {
	dir, other := tree(t, nil), tree(t, nil)
	inner := filepath.Join(dir, "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir, other, inner)
	for _, tt := range []struct{ name, want string }{
		{"./a//b", "a/b"},
		{dir, "."},
		{dir + "/a", "a"},
		{other + "/a", other + "/a"},
		{inner + "/a", inner + "/a"}, // the innermost folder counts
	} {
		if got, err := r.Display(tt.name); err != nil || got != tt.want {
			t.Errorf("Display(%q) = %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
	if _, err := r.Display("../x"); err == nil {
		t.Errorf("Display(../x) succeeded, want an error")
	}
}

func TestStat(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "abc", "link": "-> a.txt", "out": "-> /etc"})
	r := open(t, dir)
	if info, err := r.Stat("link"); err != nil || info.Size() != 3 {
		t.Errorf("Stat(link) = %v, %v, want 3 bytes", info, err)
	}
	if _, err := r.Stat("out"); err == nil {
		t.Error("Stat(out) succeeded, want an error")
	}
	var got []string
	for _, name := range []string{"a.txt", "link", "out"} {
		info, target, err := r.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, roots.Kind(info.Mode())+" "+target)
	}
	if diff := cmp.Diff([]string{"file ", "symlink a.txt", "symlink /etc"}, got); diff != "" {
		t.Errorf("Lstat (-want +got):\n%s", diff)
	}
}
