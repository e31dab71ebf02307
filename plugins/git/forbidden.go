package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/forbidden"
	"github.com/toolhost/toolhost/sdk/tool"
)

// forbidden reports whether no call may use a path of the worktree: as it is, or as its
// folder of the workspace is spelled.
func (r *repository) forbidden(path string) bool {
	patterns := forbidden.Patterns(r.call.Files().Forbidden)
	if path == "" || len(patterns) == 0 {
		return false
	}
	return patterns.Covers(filepath.Join(r.worktree, path)) || r.spelled != r.worktree && patterns.Covers(filepath.Join(r.spelled, path))
}

// forbiddenPath refuses a forbidden path that a call has named.
func forbiddenPath(name string) *tool.Error {
	return tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: %s", tool.VisibleName(name)).
		WithHint("the administrator has forbidden it to all calls; go on without it")
}

// refuseForbidden refuses a change that includes forbidden files, which it does not name.
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
		WithHint("the administrator has forbidden it to all calls; name the files that are meant if the tool takes files, or the user can do this with git itself")
}

// aForbiddenFile stands for the name of one in what git says.
const aForbiddenFile = "[forbidden file]"

// maybePath finds what may be a path in what git says.
var maybePath = regexp.MustCompile(`'[^'\n]*'|"[^"\n]*"|[^\s'":;,]+`)

// withoutForbidden takes the names of forbidden files out of what git says.
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

// named splits paths into those that a call may be told and the number of the others.
func (r *repository) named(paths []string) (named []string, forbidden int) {
	named = slices.DeleteFunc(slices.Clone(paths), r.forbidden)
	return named, len(paths) - len(named)
}
