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

// searchOf returns what grep reads with these words after its name; nil if that is not known,
// or if it follows symbolic links.
func searchOf(name string, words []word) *Search {
	p := programs["grep"]
	rest, unknown := p.split(words)
	if name != "grep" || unknown != "" || given(words, "R", "dereference-recursive") {
		return nil
	}
	if slices.ContainsFunc(words, open) {
		return nil
	}
	if !given(words, "e", "regexp") && len(rest) > 0 {
		rest = rest[1:] // the pattern
	}
	s := &Search{Places: placesOr(rest)}
	for i, w := range words {
		if w.text == "--" {
			break
		}
		option, value, valued := strings.Cut(w.text, "=")
		if !valued && i+1 < len(words) {
			value = words[i+1].text
		}
		switch option {
		case "--include":
			s.Only = append(s.Only, value)
		case "--exclude":
			s.Without = append(s.Without, value)
		case "--exclude-dir":
			s.WithoutDirs = append(s.WithoutDirs, value)
		}
	}
	s.simplify()
	return s
}

// globSearch returns what rg reads with these words after its name, of which globs select the
// files; nil if that is not known.
func globSearch(words []word, globs []string) *Search {
	p := programs["rg"]
	rest, unknown := p.split(words)
	odd := func(glob string) bool { return strings.ContainsAny(glob, `[]{}\/`) }
	if unknown != "" || slices.ContainsFunc(globs, odd) || has(words, "--iglob") || slices.ContainsFunc(words, open) {
		return nil
	}
	if !given(words, "e", "regexp") && len(rest) > 0 {
		rest = rest[1:] // the pattern
	}
	return &Search{Places: placesOr(rest), Only: globs}
}

// placesOf returns what diff reads with these words after its name; nil if that is not known.
func placesOf(words []word) *Search {
	p := programs["diff"]
	rest, unknown := p.split(words)
	if unknown != "" || slices.ContainsFunc(words, open) {
		return nil
	}
	return &Search{Places: texts(rest)}
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
