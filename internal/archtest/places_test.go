package archtest

import (
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fileName finds names of files in ARCHITECTURE.md, such as process/wire.go.
var fileName = regexp.MustCompile(`[\w./-]+\.(?:go|proto)\b|\w+/[\w./-]+\.txt\b`)

// TestNamedFilesExist checks that each file that ARCHITECTURE.md names exists. A name with
// directories may leave out those above, and a wildcard stays unchecked.
func TestNamedFilesExist(t *testing.T) {
	t.Parallel()
	page := readFile(t, filepath.Join(root(t), "ARCHITECTURE.md"))
	exists := make(map[string]bool)
	err := filepath.WalkDir(root(t), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(root(t), file)
		for name = filepath.ToSlash(name); err == nil; {
			exists[name] = true
			_, below, more := strings.Cut(name, "/")
			if !more {
				break
			}
			name = below
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := fileName.FindAllString(page, -1)
	if len(names) < 100 {
		t.Errorf("ARCHITECTURE.md names %d files, want at least 100", len(names))
	}
	for _, name := range names {
		if !exists[path.Clean(name)] {
			t.Errorf("ARCHITECTURE.md names %s, which does not exist", name)
		}
	}
}
