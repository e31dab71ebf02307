package porcelain

import "strings"

// Setting is one line of git's configuration.
type Setting struct {
	// Section and Name are in lower case. Subsection keeps its case, and is "" if there
	// is none.
	Section, Subsection, Name string
	// Value is "true" for a name without a value.
	Value string
}

// Key returns the setting's full name for git.
func (s Setting) Key() string {
	if s.Subsection == "" {
		return s.Section + "." + s.Name
	}
	return s.Section + "." + s.Subsection + "." + s.Name
}

// ParseConfig parses one record of git config --list -z.
func ParseConfig(record string) (Setting, bool) {
	key, value, valued := strings.Cut(record, "\n")
	if !valued {
		value = "true"
	}
	first, last := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
	if first <= 0 || last == len(key)-1 {
		return Setting{}, false
	}
	s := Setting{Section: strings.ToLower(key[:first]), Name: strings.ToLower(key[last+1:]), Value: value}
	if last > first {
		s.Subsection = key[first+1 : last]
	}
	return s, true
}
