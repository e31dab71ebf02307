package pipeline

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/internal/links"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxSearched bounds the names that the host looks at for the searches of a call.
const maxSearched = 50_000

// noteSearches looks for sensitive files where commands search all files below a directory.
// A person is asked only if there are some, or if there are too many files to tell.
func (s *Settings) noteSearches(in *policy.Input) {
	left := maxSearched
	for _, c := range in.Commands {
		for i := range c.Line.Segments {
			segment := &c.Line.Segments[i]
			if segment.Search == nil {
				continue
			}
			places, all := in.Places(c.Line)
			if !all {
				continue
			}
			why := ""
			for _, place := range places {
				why = s.searched(in, segment, inside(place, segment.Dirs), &left)
				if why != "" {
					break
				}
			}
			segment.Bulk = why
		}
	}
}

// errFound ends a walk.
var errFound = errors.New("found")

// searched returns why a command that searches in dir may show a sensitive file, or "".
func (s *Settings) searched(in *policy.Input, segment *command.Segment, dir string, left *int) (why string) {
	search := segment.Search
	for _, place := range search.Places {
		if !filepath.IsAbs(place) {
			place = dir + string(filepath.Separator) + place
		}
		place = links.Resolve(place)
		err := filepath.WalkDir(place, func(name string, d fs.DirEntry, err error) error {
			*left--
			switch base := filepath.Base(name); {
			case *left < 0:
				why = segment.Bulk + ", and there are too many to look for sensitive ones"
				return errFound
			case d == nil || errors.Is(err, fs.ErrPermission): // the command cannot read it either
				return nil
			case err != nil:
				return err
			case d.IsDir() && name != place && (matches(search.WithoutDirs, base) || base == "objects" && filepath.Base(filepath.Dir(name)) == ".git"):
				return fs.SkipDir
			case segment.Name == "diff" && d.Type() == fs.ModeSymlink:
				why = "diff follows the link " + tool.VisibleName(shownIn(dir, name))
				return errFound
			case d.IsDir() || matches(search.Without, base) || len(search.Only) > 0 && !matches(search.Only, base):
				return nil
			case s.Policy.IsSensitive(in, s.asConfigured(name)):
				why = segment.Name + " would read " + tool.VisibleName(shownIn(dir, name))
				if segment.Name == "grep" {
					why += ", without --exclude=" + tool.VisibleName(base)
				}
				return errFound
			}
			return nil
		})
		if err != nil && why == "" {
			why = segment.Bulk + " that cannot be listed"
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// matches reports whether a name matches one of the patterns.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// shownIn returns a path relative to the directory that it is in.
func shownIn(dir, name string) string {
	if rel, err := filepath.Rel(dir, name); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return filepath.Base(name)
}
