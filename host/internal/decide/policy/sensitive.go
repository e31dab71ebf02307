package policy

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/sdk/sensitive"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Sensitive configures the files that usually hold secrets. The zero value confirms calls that name
// a file of the built-in list.
type Sensitive struct {
	// Patterns are patterns for [sensitive.Parse]; nil means [sensitive.Default], and an empty list
	// that no file is sensitive.
	Patterns []string `json:"patterns"`
	// Verdict is the verdict on calls that name such a file; 0 means [Confirm]. Unless it is
	// [Allow], a person is also asked about commands that read files without naming them.
	Verdict Verdict `json:"verdict,omitempty"`
	// Place is where that is configured; "" if it is built in.
	Place string `json:"-"`
}

// secrets decides about sensitive files.
type secrets struct {
	Sensitive

	texts    []string // of the patterns
	patterns sensitive.Patterns
}

// find returns the pattern that covers an absolute path of a call.
func (s *secrets) find(in *Input, name string) (pattern string, ok bool) {
	return s.patterns.Find(name, in.folder(name))
}

// changeSensitive is the configuration that would change a decision about sensitive files.
const changeSensitive = `sensitive_verdict in the paths block, or "!NAME" in its sensitive`

// newSecrets reads the patterns.
func newSecrets(s Sensitive) (secrets, error) {
	texts := s.Patterns
	if texts == nil {
		texts = sensitive.Default()
	}
	patterns, err := sensitive.Parse(texts)
	return secrets{s, texts, patterns}, err
}

// Sensitive returns the patterns of sensitive files for plugins, which refuse files that match.
// It is never nil; it is empty if the verdict is [Allow]. The caller must not change the slice.
func (r *Rules) Sensitive() []string {
	if r.secrets.off() {
		return []string{}
	}
	return r.secrets.texts
}

// IsSensitive reports whether a person is asked about an absolute path.
func (r *Rules) IsSensitive(in *Input, path string) bool {
	_, ok := r.secrets.find(in, path)
	return ok && !r.secrets.off()
}

// SensitiveOf returns the sensitive files in the paths of a call, as absolute paths; none if the
// verdict is [Allow]. The call may use them once it is allowed.
func (r *Rules) SensitiveOf(in *Input) []string {
	if r.secrets.off() {
		return nil
	}
	var files []string
	for _, named := range in.Paths {
		if _, ok := r.secrets.find(in, named.Absolute); ok && utf8.ValidString(named.Absolute) && !slices.Contains(files, named.Absolute) {
			files = append(files, named.Absolute)
		}
	}
	return files
}

// unreachable returns a sensitive file that the call names and that is neither in a folder of the
// call nor granted to the plugin. The plugin refuses it in any case.
func (r *Rules) unreachable(in *Input) (name string, ok bool) {
	if r.secrets.off() {
		return "", false
	}
	for _, named := range r.Outside(in) {
		if _, ok := r.secrets.find(in, named.Absolute); ok {
			return named.Name, true
		}
	}
	return "", false
}

// Outside returns the paths of a call that are neither in a folder of the workspace nor granted to
// the plugin by its sandbox.
func (r *Rules) Outside(in *Input) []Path {
	var outside []Path
	for _, named := range in.Paths {
		given := func(path string) bool { return Within(named.Absolute, path) }
		if !in.inside(named.Absolute) && !slices.ContainsFunc(r.opts.Reach[in.Plugin], given) {
			outside = append(outside, named)
		}
	}
	return outside
}

// off reports whether no file is asked about.
func (s *secrets) off() bool { return len(s.patterns) == 0 || s.Verdict == Allow }

// decide decides about the sensitive files that a call names, or may read without naming them. It
// returns false if there are none.
func (s *secrets) decide(in *Input) (Decision, bool) {
	if s.off() {
		return Decision{}, false
	}
	for _, named := range in.Paths {
		if pattern, ok := s.find(in, named.Absolute); ok {
			return s.decision(pattern, named.Name), true
		}
	}
	broad := ""
	for _, named := range in.Linked {
		if named.Absolute == "" {
			broad = "it has more words than can be followed through links"
		} else if pattern, ok := s.find(in, named.Absolute); ok {
			return s.decision(pattern, named.Name), true
		}
	}
	seen := map[command.Mention]bool{}
	for _, c := range in.Commands {
		bases, all := in.Places(c.Line)
		if !all {
			broad = "it changes to more directories than can be followed"
		}
		for _, m := range c.Line.Mentions {
			if seen[m] {
				continue
			}
			seen[m] = true
			if m.Glob {
				pattern, how := s.patterns.Overlap(m.Text)
				switch how {
				case sensitive.Aimed:
					return s.decision(pattern, m.Text), true
				case sensitive.Broad:
					if c.Line.Deferred {
						continue // the files that it matches are judged
					}
					broad = cmp.Or(broad, tool.VisibleName(m.Text)+" may name sensitive files")
				case sensitive.None:
				}
				continue
			}
			if pattern, ok := s.mentions(in, bases, m.Text); ok {
				return s.decision(pattern, m.Text), true
			}
		}
		for i := range c.Line.Segments {
			if segment := &c.Line.Segments[i]; !segment.Maybe {
				broad = cmp.Or(broad, segment.Bulk)
			}
		}
	}
	if broad == "" {
		return Decision{}, false
	}
	return Decision{Verdict: Ask, Rule: "paths.sensitive: " + broad, Where: s.Place, Change: changeSensitive}, true
}

// mentions returns the pattern that covers a word of a command in any of its possible directories.
func (s *secrets) mentions(in *Input, bases []string, name string) (string, bool) {
	if !s.patterns.Touches(name) {
		return "", false
	}
	if filepath.IsAbs(name) {
		return s.find(in, filepath.Clean(name))
	}
	for _, base := range bases {
		if pattern, ok := s.find(in, filepath.Join(base, name)); ok {
			return pattern, true
		}
	}
	return "", false
}

// decision returns the decision about a file that a pattern covers.
func (s *secrets) decision(pattern, name string) Decision {
	d := Decision{Verdict: cmp.Or(s.Verdict, Confirm), Rule: fmt.Sprintf("paths.sensitive %q", pattern), Where: s.Place, Change: changeSensitive}
	if d.Verdict == Deny {
		d.Reason = "Path blocked by security policy: " + tool.VisibleName(name)
	}
	return d
}

// folder returns the innermost folder of the call that contains a path; "" if none does.
func (in *Input) folder(name string) string {
	found := ""
	for _, folder := range in.Folders {
		if Within(name, folder) && len(folder) > len(found) {
			found = folder
		}
	}
	return strings.TrimSuffix(found, "/")
}
