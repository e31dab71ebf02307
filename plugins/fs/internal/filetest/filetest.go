// Package filetest makes files for tests.
package filetest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Tree makes files below a new directory, which it returns. A name that ends in a slash is
// a directory, and the content "-> x" a symbolic link to x.
func Tree(tb testing.TB, files map[string]string) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch target, isLink := strings.CutPrefix(content, "-> "); {
		case strings.HasSuffix(name, "/"):
			err = errors.Join(err, os.MkdirAll(path, 0o755))
		case isLink:
			err = errors.Join(err, os.Symlink(target, path))
		default:
			err = errors.Join(err, os.WriteFile(path, []byte(content), 0o644))
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}
