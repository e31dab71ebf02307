package main

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/toolhost/toolhost/sdk/display"
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
	return tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: %s", display.Name(name)).
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
	return tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: the change includes %s", display.Plural(n, "forbidden file")).
		WithHint("the administrator has forbidden these files for all calls; name other files if the tool has files, or ask the user to do this with git")
}

// aForbiddenFile replaces the name of a forbidden file in git's output.
const aForbiddenFile = "[forbidden file]"

// maxWords bounds the words of a line that are checked for names.
const maxWords = 120

// withoutForbidden replaces the names of forbidden files in git's output. Git does not
// mark where a name begins and ends, and a name may have spaces and quotes: everything
// from one word to another may be one.
func (r *repository) withoutForbidden(said string) string {
	if len(r.call.Files().Forbidden) == 0 {
		return said
	}
	var b strings.Builder
	for line := range strings.Lines(said) {
		b.WriteString(r.lineWithoutForbidden(line))
	}
	return b.String()
}

func (r *repository) lineWithoutForbidden(line string) string {
	words := wordPlaces(line)
	if len(words) > maxWords {
		return "[a line that is too long to look for forbidden files]\n"
	}
	var b strings.Builder
	done := 0
	for i := 0; i < len(words); i++ {
		for j := len(words) - 1; j >= i; j-- { // the longest: a name has no rest
			if r.forbidden(line[words[i][0]:words[j][1]]) {
				b.WriteString(line[done:words[i][0]] + aForbiddenFile)
				done, i = words[j][1], j
				break
			}
		}
	}
	return b.String() + line[done:]
}

// wordPlaces returns where the words of a line begin and end.
func wordPlaces(line string) (places [][2]int) {
	start := -1
	for i, c := range line + " " {
		switch inside := !unicode.IsSpace(c) && !strings.ContainsRune(`'":;,()=`, c); {
		case inside && start < 0:
			start = i
		case !inside && start >= 0:
			places, start = append(places, [2]int{start, i}), -1
		}
	}
	return places
}

// named returns the paths that a result may name, and the number of forbidden ones.
func (r *repository) named(paths []string) (named []string, forbidden int) {
	named = slices.DeleteFunc(slices.Clone(paths), r.forbidden)
	return named, len(paths) - len(named)
}
