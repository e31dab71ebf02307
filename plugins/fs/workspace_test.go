package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// tree makes files below a new directory; a name that ends in a slash is a
// directory, and the content "-> x" a symbolic link to x.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
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
			t.Fatal(err)
		}
	}
	return dir
}

// workspaceOf opens dir as a call would, with room for budget bytes.
func workspaceOf(t testing.TB, dir string, budget tool.ByteSize) *workspace {
	t.Helper()
	w, err := openWorkspace([]string{dir}, budget, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// message is what a model reads of an error.
func message(err error) string {
	if err == nil {
		return ""
	}
	return tool.AsError(err).Error()
}
