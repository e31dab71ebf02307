package pipeline

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/gitrepo"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/internal/links"
	"github.com/toolhost/toolhost/sdk/tool"
)

// doubtRepositories marks commands that run git where git may start a program that the
// repository names. The host asks a person about them, whatever their words are.
func doubtRepositories(in *policy.Input) {
	for _, c := range in.Commands {
		for i := range c.Line.Segments {
			s := &c.Line.Segments[i]
			if !usesGit(s) {
				continue
			}
			if why := doubt(in, c.Line, s); why != "" {
				c.Line.Doubt(s.Name + " may start a program of the repository: " + why)
			}
			if j := changes(c.Line, i); j >= 0 {
				c.Line.Doubt(s.Name + " uses a repository that " + c.Line.Segments[j].Name + " may change first")
			}
		}
	}
}

// usesGit reports whether a command is git or runs it: go asks git for the commit that it
// builds.
func usesGit(s *command.Segment) bool { return s.Name == "git" || s.Name == "go" }

// notePatches marks git commands that may print changes of sensitive files without naming
// them, because the repository lists the files. A person is asked about them.
func (s *Settings) notePatches(in *policy.Input) {
	for _, c := range in.Commands {
		for i := range c.Line.Segments {
			if segment := &c.Line.Segments[i]; segment.Patches && segment.Bulk == "" {
				segment.Bulk = s.patched(in, c.Line, segment)
			}
		}
	}
}

// patched returns why a git command may print changes of a sensitive file, or "".
func (s *Settings) patched(in *policy.Input, line *command.Line, segment *command.Segment) (why string) {
	places, _ := in.Places(line) // doubt reports lines with more directories
	for _, place := range places {
		dir := inside(place, segment.Dirs)
		if segment.Words[1] == "diff" && len(segment.Words) > 2 && !gitrepo.Exists(dir) {
			return "git diff compares any files outside of a repository"
		}
		some, without := pathspecs(dir, segment.Words[1:])
		err := gitrepo.Tracked(dir, func(path string) {
			covers := func(spec string) bool { return policy.Within(path, spec) }
			if why != "" || len(some) > 0 && !slices.ContainsFunc(some, covers) || slices.ContainsFunc(without, covers) {
				return
			}
			if s.Policy.IsSensitive(in, path) {
				why = "git " + segment.Words[1] + " may show changes of " + tool.VisibleName(filepath.Base(path))
			}
		})
		if why == "" && err != nil {
			why = "git " + segment.Words[1] + " may show changes of files that cannot be listed"
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// pathspecs returns the absolute paths that limit a git command, if it has such a limit, and
// the paths that it excludes. Patterns do not count as limits.
func pathspecs(dir string, words []string) (some, without []string) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	all, paths := false, false
	for i, word := range words {
		if i == 0 || !paths && strings.HasPrefix(word, "-") {
			paths = paths || word == "--"
			continue // the git command, or an option
		}
		value := !paths && strings.HasPrefix(words[i-1], "-") // may be the value of an option
		out := false
		for _, magic := range []string{":!", ":^", ":(exclude)"} {
			if rest, ok := strings.CutPrefix(word, magic); ok {
				word, out = rest, true
			}
		}
		path := filepath.Join(dir, word)
		_, err := os.Lstat(path)
		switch {
		case value:
			all = all || !out && (err == nil || word == "" || strings.ContainsAny(word, `*?[\:`))
		case word == "" || strings.ContainsAny(word, `*?[\:`) || filepath.IsAbs(word):
			all = all || !out
		case out:
			without = append(without, path)
		case paths || err == nil: // otherwise it is a revision
			some = append(some, path)
		}
	}
	if all {
		some = nil
	}
	return some, without
}

// inside returns the directory that a program changes to before it starts.
func inside(dir string, dirs []string) string {
	for _, next := range dirs {
		if !filepath.IsAbs(next) {
			next = dir + string(filepath.Separator) + next
		}
		if dir = filepath.Clean(next); climbs(next) {
			dir = links.Resolve(next)
		}
	}
	return dir
}

// doubt returns why a repository that a command may use is unsafe, or "".
func doubt(in *policy.Input, line *command.Line, s *command.Segment) string {
	places, all := in.Places(line)
	if !all {
		return "the line changes the directory too often"
	}
	for _, dir := range places {
		if why := gitrepo.Doubt(inside(dir, s.Dirs)); why != "" {
			return why
		}
	}
	return ""
}

// changes returns the index of the first other command in a line that may change a repository,
// or -1.
func changes(line *command.Line, of int) int {
	for i := range line.Segments {
		s := &line.Segments[i]
		harmless := s.Transparent || s.Maybe || s.Known && s.Risk == command.Low || keepsConfiguration(s)
		if i != of && !harmless {
			return i
		}
	}
	return -1
}

// keepsConfiguration reports whether a command is a git command that neither creates a
// repository nor changes configuration that can start programs.
func keepsConfiguration(s *command.Segment) bool {
	return s.Name == "git" && !s.Loose && len(s.Words) > 1 && slices.Contains([]string{"add", "commit", "fetch", "push", "tag"}, s.Words[1])
}
