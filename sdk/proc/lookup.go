package proc

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// lookUp returns the program's absolute path.
func (c *Command) lookUp() (string, error) {
	if filepath.IsAbs(c.Path) {
		return c.Path, nil
	}
	if strings.ContainsRune(c.Path, '/') {
		return "", invalid("the program %q is neither an absolute path nor a name", c.Path).
			WithHint("give its absolute path")
	}
	list := c.searchPath()
	var found error
	for _, dir := range filepath.SplitList(list) {
		if !filepath.IsAbs(dir) {
			continue // a plain name never means a file in the working directory
		}
		path := filepath.Join(dir, c.Path)
		info, err := os.Stat(path)
		switch {
		case err != nil || info.IsDir():
		case info.Mode()&0o111 == 0:
			found = notExecutable(path, info.Mode())
		default:
			return path, nil
		}
	}
	if found != nil {
		return "", found
	}
	return "", tool.Errorf(tool.NotFound, "program not found: %s", tool.VisibleName(c.Path)).
		WithHint("it was looked for in %q", list)
}

func (c *Command) searchPath() string {
	list := ""
	for _, entry := range c.Env { // the last entry counts, as for the program itself
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			list = value
		}
	}
	return cmp.Or(c.SearchPath, list)
}

func notExecutable(path string, mode os.FileMode) error {
	return tool.Errorf(tool.PermissionDenied, "program may not be executed: %s", tool.VisibleName(path)).
		WithHint("its mode is %v", mode)
}
