package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/forbidden"
	"github.com/toolhost/toolhost/sdk/tool"
)

// forbidden reports whether paths.forbidden covers a path of the worktree, either its
// real path or its path in the spelling of the workspace.
func (r *repository) forbidden(path string) bool {
	patterns := forbidden.Patterns(r.call.Files().Forbidden)
	if path == "" || len(patterns) == 0 {
		return false
	}
	return patterns.Covers(filepath.Join(r.worktree, path)) || r.spelled != r.worktree && patterns.Covers(filepath.Join(r.spelled, path))
}

// forbiddenPath returns the error for a forbidden path that a call names.
func forbiddenPath(name string) *tool.Error {
	return tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: %s", tool.VisibleName(name)).
		WithHint("the administrator has forbidden this path for all calls; continue without it")
}

// refuseForbidden refuses a change that includes forbidden files. The error counts the
// files without naming them.
func (r *repository) refuseForbidden(paths []string) error {
	n := 0
	for _, path := range paths {
		if r.forbidden(path) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: the change includes %s", plural(n, "forbidden file")).
		WithHint("the administrator has forbidden these files for all calls; name other files if the tool has files, or ask the user to do this with git")
}

// aForbiddenFile replaces the name of a forbidden file in git's output.
const aForbiddenFile = "[forbidden file]"

// maybePath matches everything in git's output that may be a path.
var maybePath = regexp.MustCompile(`'[^'\n]*'|"[^"\n]*"|[^\s'":;,]+`)

// withoutForbidden replaces the names of forbidden files in git's output.
func (r *repository) withoutForbidden(said string) string {
	if len(r.call.Files().Forbidden) == 0 {
		return said
	}
	var b strings.Builder
	for line := range strings.Lines(said) {
		if r.forbidden(strings.TrimSpace(line)) {
			line = aForbiddenFile + "\n"
		}
		b.WriteString(maybePath.ReplaceAllStringFunc(line, func(word string) string {
			if r.forbidden(strings.Trim(word, `'"`)) {
				return aForbiddenFile
			}
			return word
		}))
	}
	return b.String()
}

// named returns the paths that a result may name, and the number of forbidden ones.
func (r *repository) named(paths []string) (named []string, forbidden int) {
	named = slices.DeleteFunc(slices.Clone(paths), r.forbidden)
	return named, len(paths) - len(named)
}
