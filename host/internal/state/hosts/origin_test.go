package hosts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestReadOriginDoesNotWait: another account may have put a FIFO in the place of the file.
func TestReadOriginDoesNotWait(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, originFile)
	must(t, unix.Mkfifo(path, 0o600))
	fifo, err := os.OpenFile(path, os.O_RDWR, 0) // with a writer, so that a reader would wait
	must(t, err)
	defer fifo.Close()
	if o, err := ReadOrigin(dir); err == nil {
		t.Errorf("ReadOrigin() = %+v, want an error", o)
	}
}

// TestMovedFrom finds the state of a configuration that was moved or copied, and no other.
func TestMovedFrom(t *testing.T) {
	const database = "toolhost.db"
	for _, tt := range []struct {
		name   string
		change func(old, now string) error // what happened to the configuration
		want   bool
	}{
		{"moved", os.Rename, true},
		{"moved and changed", func(old, now string) error {
			return errors.Join(os.Rename(old, now), os.WriteFile(now, []byte("changed"), 0o600))
		}, true},
		{"written again elsewhere", func(old, now string) error {
			return errors.Join(os.WriteFile(now, []byte("text"), 0o600), os.Remove(old))
		}, true},
		{"copied", func(_, now string) error { return os.WriteFile(now, []byte("text"), 0o600) }, false},
		{"a link to it", os.Link, false},
		{"another one", func(old, now string) error { // made while the old one has its inode
			return errors.Join(os.WriteFile(now, []byte("another"), 0o600), os.Remove(old))
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			old, now := filepath.Join(dir, "old.hcl"), filepath.Join(dir, "now.hcl")
			must(t, os.WriteFile(old, []byte("text"), 0o600))
			former, unused, own := filepath.Join(dir, "s", "former"), filepath.Join(dir, "s", "unused"), filepath.Join(dir, "s", "own")
			for _, state := range []string{former, unused, own, filepath.Join(dir, "s", "strange")} {
				must(t, os.MkdirAll(state, 0o700))
			}
			must(t, OriginOf(old, "text").Save(former))
			must(t, OriginOf(old, "text").Save(unused))
			must(t, os.WriteFile(filepath.Join(dir, "s", "strange", originFile), []byte("{"), 0o600))
			must(t, os.WriteFile(filepath.Join(former, database), nil, 0o600))
			must(t, tt.change(old, now))
			text, err := os.ReadFile(now)
			must(t, err)
			got, found := MovedFrom(OriginOf(now, string(text)), own, database)
			if want := (Left{StateDir: former, Path: old}); found != tt.want || found && got != want {
				t.Errorf("MovedFrom() = %+v, %v; want %+v: %v", got, found, want, tt.want)
			}
		})
	}
}

// TestMovedFromTheLast takes the state that was used last.
func TestMovedFromTheLast(t *testing.T) {
	const database = "toolhost.db"
	dir := t.TempDir()
	gone := filepath.Join(dir, "gone.hcl")
	for i, name := range []string{"a", "b", "c"} {
		state := filepath.Join(dir, name)
		must(t, os.Mkdir(state, 0o700))
		must(t, Origin{Path: gone, Contents: "text"}.Save(state))
		file := filepath.Join(state, database)
		must(t, os.WriteFile(file, nil, 0o600))
		at := time.Date(2026, 1, []int{2, 3, 1}[i], 0, 0, 0, 0, time.UTC)
		must(t, os.Chtimes(file, at, at))
	}
	got, found := MovedFrom(Origin{Path: filepath.Join(dir, "now.hcl"), Contents: "text"}, filepath.Join(dir, "own"), database)
	if !found || got.StateDir != filepath.Join(dir, "b") {
		t.Errorf("MovedFrom() = %+v, %v; want the state b", got, found)
	}
}

// TestReadOrigin reads what was saved, and refuses what is too long or a link.
func TestReadOrigin(t *testing.T) {
	dir := t.TempDir()
	want := Origin{Path: "/etc/toolhost", Contents: "sha256:12", Device: 3, Inode: 4}
	for range 2 {
		must(t, want.Save(dir))
	}
	if got, err := ReadOrigin(dir); err != nil || got != want {
		t.Errorf("ReadOrigin() = %+v, %v; want %+v", got, err, want)
	}
	path := filepath.Join(dir, originFile)
	must(t, os.WriteFile(path, []byte(`{"path":"`+strings.Repeat("a", maxOrigin)+`"}`), 0o600))
	if got, err := ReadOrigin(dir); err == nil {
		t.Errorf("ReadOrigin() of a long file = %.80v", got)
	}
	must(t, os.Rename(path, path+".old"))
	must(t, os.Symlink(path+".old", path))
	if got, err := ReadOrigin(dir); err == nil {
		t.Errorf("ReadOrigin() of a link = %.80v", got)
	}
	if err := want.Save(filepath.Join(dir, "none")); err == nil {
		t.Error("Save() in a directory that does not exist = nil")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
