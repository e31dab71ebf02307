package roots_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// FuzzOpen checks, for any name, that an opened file is in the folder, and that an error is
// for a model and names nothing outside.
func FuzzOpen(f *testing.F) {
	for _, name := range []string{
		"a.txt", "sub/../a.txt", "../a.txt", "/etc/passwd", "link/x", "out/passwd", "./././a.txt", "a.txt/..", "\x00", "\xff", ".env", "up/up/up/a.txt", "//", "sub/./out/../..",
	} {
		f.Add(name)
	}
	outside := tree(f, map[string]string{"passwd": "outside"})
	dir := tree(f, map[string]string{
		"a.txt": "inside", "sub/b.txt": "inside", "link": "-> sub", "out": "-> " + outside, "sub/out": "-> ../../..", "up": "-> .", ".env": "outside", "abs": "-> $DIR/sub",
	})
	r := open(f, dir)
	f.Fuzz(func(t *testing.T, name string) {
		file, err := r.Open(name)
		if err == nil {
			defer file.Close()
			if got := read(r, name); got != "inside" {
				t.Errorf("Open(%q) reads %q, want a file inside", name, got)
			}
			return
		}
		var told *tool.Error
		if !errors.As(err, &told) || !told.Code.Valid() {
			t.Fatalf("Open(%q) = %v, want a *tool.Error", name, err)
		}
		if !strings.Contains(name, filepath.Base(outside)) && strings.Contains(told.ModelText(), outside) {
			t.Errorf("Open(%q) tells of %s: %s", name, outside, told.ModelText())
		}
		if _, err := r.Display(name); err == nil && told.Code == tool.InvalidArgument {
			t.Errorf("Display(%q) succeeds, Open says %v", name, told)
		}
	})
}
