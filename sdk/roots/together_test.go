package roots

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// several returns a directory with the files a, b and gone, and a change for each and for a
// new file.
func several(t *testing.T) (dir string, changes []Change) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"a", "b", "gone"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("old "+name), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := errors.Join(os.Chmod(filepath.Join(dir, "a"), 0o751), os.Chtimes(filepath.Join(dir, "a"), long, long)); err != nil {
		t.Fatal(err)
	}
	r, err := Open([]string{dir}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	var targets []*Target
	for _, name := range []string{"a", "x/y/new", "gone", "b"} {
		target, err := r.Target(name, TargetOptions{Parents: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(target.Close)
		targets = append(targets, target)
		changes = append(changes, Change{Target: target, Content: []byte("new " + name), Remove: name == "gone"})
	}
	unlock, err := r.Lock(t.Context(), targets...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unlock)
	return dir, changes
}

// holds returns the files below dir and their content, on one line.
func holds(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		if d.IsDir() {
			all = append(all, filepath.Base(path)+"/")
			return nil
		}
		data, err := os.ReadFile(path)
		all = append(all, filepath.Base(path)+"="+string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

func TestChangeAll(t *testing.T) {
	dir, changes := several(t)
	changes[1].Mode, changes[3].Mode, changes[3].Like = 0o755, 0o644, changes[0].Target
	if err := ChangeAll(changes); err != nil {
		t.Fatal(err)
	}
	if got, want := holds(t, dir), "a=new a b=new b x/ y/ new=new x/y/new"; got != want {
		t.Errorf("there is %s, want %s", got, want)
	}
	for name, want := range map[string]os.FileMode{"a": 0o100, "b": 0, "x/y/new": 0o100} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got&0o100 != want {
			t.Errorf("%s has the mode %o, want %o", name, got, want)
		}
	}
}

// TestChangeAllRefused checks that a failure before the first change leaves everything
// unchanged.
func TestChangeAllRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		meddle func(dir string) error
		want   string
	}{
		{"another", func(dir string) error { return os.WriteFile(filepath.Join(dir, "b"), []byte("theirs"), 0o600) }, "conflict: b was changed by another program at the same time; nothing was done"},
		{"a file in the way", func(dir string) error { return os.WriteFile(filepath.Join(dir, "x"), nil, 0o600) }, "failed: x/y/new: Failed to write file: not a directory; nothing was done"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, changes := several(t)
			if err := tt.meddle(dir); err != nil {
				t.Fatal(err)
			}
			want := holds(t, dir)
			err := ChangeAll(changes)
			if err == nil || err.Error() != tt.want {
				t.Errorf("ChangeAll = %v, want %s", err, tt.want)
			}
			if got := holds(t, dir); got != want {
				t.Errorf("there is %s, want %s", got, want)
			}
		})
	}
}

// TestChangeAllPutsBack checks that a failure after some changes restores everything: another
// program replaces the last place after all changes are prepared. The control does not
// restore.
func TestChangeAllPutsBack(t *testing.T) {
	for _, puts := range []bool{true, false} {
		dir, changes := several(t)
		before, err := os.Stat(filepath.Join(dir, "a"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := stage(changes)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "b"), []byte("theirs"), 0o600); err != nil {
			t.Fatal(err)
		}
		failed := s.takeAll(puts)
		s.end()
		if !puts {
			if got := holds(t, dir); !strings.HasPrefix(got, "a=new a b=theirs") {
				t.Errorf("without putting back there is %s, so the test shows nothing", got)
			}
			continue
		}
		const want = "conflict: b was changed by another program at the same time; these files, which were changed before, were put back: gone, x/y/new, a"
		if failed == nil || failed.Error() != want {
			t.Errorf("the error is %v, want %s", failed, want)
		}
		if got, want := holds(t, dir), "a=old a b=theirs gone=old gone"; got != want {
			t.Errorf("there is %s, want %s", got, want)
		}
		after, err := os.Stat(filepath.Join(dir, "a"))
		if err != nil || after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) {
			t.Errorf("a is %v of %v, %v, want %v of %v", after.Mode(), after.ModTime(), err, before.Mode(), before.ModTime())
		}
	}
}

// takeAll makes the changes as ChangeAll does. Without putBack it does not restore after a
// failure.
func (s *staging) takeAll(putBack bool) error {
	for i := range s.all {
		if err := s.all[i].take(); err != nil {
			if putBack {
				return s.takeBack(i, err)
			}
			return err
		}
	}
	return nil
}

// TestChangeAllSaysWhatIsNotPutBack checks that a file that another program has changed since
// is not overwritten with the old content, and that the error says so.
func TestChangeAllSaysWhatIsNotPutBack(t *testing.T) {
	dir, changes := several(t)
	s, err := stage(changes)
	if err != nil {
		t.Fatal(err)
	}
	defer s.end()
	if err := s.all[0].take(); err != nil {
		t.Fatal(err)
	}
	if err := s.all[1].take(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	failed := s.takeBack(2, changes[2].Target.explain(os.ErrPermission))
	const want = "could not be put back: a was changed by another program at the same time"
	if failed == nil || !strings.Contains(failed.Error(), want) {
		t.Errorf("the error is %v, want %s", failed, want)
	}
	s.end()
	if got, want := holds(t, dir), "a=theirs b=old b gone=old gone"; got != want {
		t.Errorf("there is %s, want %s", got, want)
	}
}
