package command

import (
	"slices"
	"strings"
)

// Search describes the files that grep -r, rg or diff may read. They follow no symbolic link but
// those in Places. The patterns are compared with the last part of a path and have no wildcards
// but "*" and "?".
type Search struct {
	// Places are the files and directories where it begins, as written.
	Places []string
	// Only are patterns of the files that it reads; none means that it reads all.
	Only []string
	// Without are patterns of files that it leaves out, and WithoutDirs of directories.
	Without, WithoutDirs []string
}

// grepSearch returns what grep -r reads with these arguments; nil if that is not known, or if it
// follows symbolic links.
func grepSearch(a *arguments) *Search {
	if a.unknown != "" || a.has("R", "dereference-recursive") || slices.ContainsFunc(a.operands, open) {
		return nil
	}
	s := &Search{
		Places: placesOr(searched(a)), Only: a.valuesOf("include"),
		Without: a.valuesOf("exclude"), WithoutDirs: a.valuesOf("exclude-dir"),
	}
	s.simplify()
	return s
}

// globSearch returns what rg reads with these arguments, of which globs select the files; nil if
// that is not known.
func globSearch(a *arguments, globs []string) *Search {
	odd := func(glob string) bool { return strings.ContainsAny(glob, `[]{}\/`) }
	if a.unknown != "" || slices.ContainsFunc(globs, odd) || a.has("iglob") || slices.ContainsFunc(a.operands, open) {
		return nil
	}
	return &Search{Places: placesOr(searched(a)), Only: globs}
}

// diffSearch returns what diff reads with these arguments; nil if that is not known.
func diffSearch(a *arguments) *Search {
	if a.unknown != "" || slices.ContainsFunc(a.operands, open) {
		return nil
	}
	return &Search{Places: texts(a.operands)}
}

// searched returns the operands of grep and rg after the pattern.
func searched(a *arguments) []word {
	if !a.has("e", "regexp") && len(a.operands) > 0 {
		return a.operands[1:]
	}
	return a.operands
}

// open reports whether a word is known only when it runs.
func open(w word) bool { return !w.static || !w.whole }

// placesOr returns the words of places, or the current directory if there are none.
func placesOr(words []word) []string {
	if len(words) == 0 {
		return []string{"."}
	}
	return texts(words)
}

// simplify removes patterns that may mean less than they seem to.
func (s *Search) simplify() {
	odd := func(pattern string) bool { return strings.ContainsAny(pattern, `[]\\/`) }
	s.Without, s.WithoutDirs = slices.DeleteFunc(s.Without, odd), slices.DeleteFunc(s.WithoutDirs, odd)
	if len(s.Only) > 0 && len(s.Without) > 0 {
		s.Only, s.Without = nil, nil // of two that match, the last one counts
	}
	if slices.ContainsFunc(s.Only, odd) {
		s.Only = nil
	}
}
