package pipeline

import (
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/host/internal/command"
	"github.com/toolhost/toolhost/host/internal/gitrepo"
	"github.com/toolhost/toolhost/host/internal/policy"
)

// doubtRepositories has a person asked about commands that run git where it may start
// a program of the repository, whatever the words of the command are.
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

// usesGit reports whether a command is git, or asks it: go notes the commit that it
// builds.
func usesGit(s *command.Segment) bool { return s.Name == "git" || s.Name == "go" }

// doubt looks at the repositories that a command may use.
func doubt(in *policy.Input, line *command.Line, s *command.Segment) string {
	places, all := in.Places(line)
	if !all {
		return "the line changes the directory too often"
	}
	for _, dir := range places {
		for _, next := range s.Dirs {
			if filepath.IsAbs(next) {
				dir = next
			} else {
				dir = filepath.Join(dir, next)
			}
		}
		if why := gitrepo.Doubt(dir); why != "" {
			return why
		}
	}
	return ""
}

// changes returns the first other command of a line that may change a repository, -1
// if there is none.
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

// keepsConfiguration reports whether a command is one of git's that makes no repository
// and changes the configuration of none in a way that matters.
func keepsConfiguration(s *command.Segment) bool {
	return s.Name == "git" && !s.Loose && len(s.Words) > 1 && slices.Contains([]string{"add", "commit", "fetch", "push", "tag"}, s.Words[1])
}
