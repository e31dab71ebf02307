// Package links resolves symbolic links in paths.
package links

import (
	"os"
	"path/filepath"
	"strings"
)

// maxLinks limits the symbolic links in a path, as Linux does: a path with more cannot be opened.
const maxLinks = 40

// Resolve follows the symbolic links in an absolute path, including those to files that do not
// exist yet. It returns a path that is not absolute, or leads through too many links, unchanged.
// The result may be outdated at once: use it for checks in addition to opening files relative to
// open folders.
func Resolve(path string) string {
	if !filepath.IsAbs(path) {
		return path
	}
	resolved, rest := string(filepath.Separator), strings.Split(path, string(filepath.Separator))
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			resolved = filepath.Dir(resolved)
			continue
		}
		next := filepath.Join(resolved, name)
		target, err := os.Readlink(next)
		if err != nil { // not a link, or missing
			resolved = next
			continue
		}
		if links++; links > maxLinks {
			return path
		}
		if filepath.IsAbs(target) {
			resolved = string(filepath.Separator)
		}
		rest = append(strings.Split(target, string(filepath.Separator)), rest...)
	}
	return resolved
}
