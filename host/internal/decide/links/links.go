// Package links says where paths lead.
package links

import (
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is how many symbolic links a path may lead through, as in Linux: one with
// more cannot be opened.
const maxLinks = 40

// Resolve follows the symbolic links in an absolute path, also those that lead to what
// does not exist: somebody may make it. A path that leads through too many, or is not
// absolute, is returned as it is. What it returns may be wrong a moment later: it is for
// checks beside whatever opens files relative to open folders.
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
		if err != nil { // it is no link, or does not exist
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
