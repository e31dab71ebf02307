package main

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxHeld is how many files a change can be about.
const maxHeld = 200_000

// state is what a change sees of the repository.
type state struct {
	porcelain.Branch
	files []porcelain.Entry
}

// lookAt lists what has changed below the paths, or everywhere. A file that was renamed
// is two.
func (r *repository) lookAt(ctx context.Context, untracked string, paths ...string) (*state, error) {
	return r.lookAtIndex(ctx, nil, untracked, paths...)
}

// lookAtIndex is lookAt with the index that the environment names.
func (r *repository) lookAtIndex(ctx context.Context, env []string, untracked string, paths ...string) (*state, error) {
	s := &state{}
	parser := porcelain.NewStatus(func(e porcelain.Entry) {
		if len(s.files) <= maxHeld {
			s.files = append(s.files, e)
		}
	})
	c := statusCommand("--no-renames", untracked, paths...)
	c.output, c.env = parser, env
	if _, err := r.run(ctx, c); err != nil {
		return nil, err
	}
	if err := parser.Close(); err != nil {
		return nil, unreadable(err)
	}
	if len(s.files) > maxHeld {
		return nil, tool.Errorf(tool.ResourceExhausted, "More than %d files have changed", maxHeld).WithHint("name files or directories")
	}
	var err error
	s.Branch, err = r.trueHead(parser.Branch)
	return s, err
}

// trueHead is what a status says of HEAD, or what HEAD itself says if a branch has the
// name by which a status says something else.
func (r *repository) trueHead(b porcelain.Branch) (porcelain.Branch, error) {
	if b.Name != "" && b.Name != "(null)" {
		return b, nil
	}
	text, err := readSmall(filepath.Join(r.gitDir, "HEAD"))
	if err != nil {
		return b, badRepository("its HEAD cannot be read").WithCause(err)
	}
	ref, symbolic := strings.CutPrefix(text, "ref: ")
	if !symbolic {
		return b, nil // it is detached
	}
	name, branch := strings.CutPrefix(ref, "refs/heads/")
	if !branch {
		return b, tool.Errorf(tool.Failed, "HEAD is %s, which is no branch", tool.VisibleName(cut(ref))).WithHint("the user must git switch to a branch")
	}
	if status := cmp.Or(b.Name, "(detached)"); status != name {
		return b, tool.Errorf(tool.Failed, "HEAD is %s, which leads to no branch", tool.VisibleName(cut(ref))).WithHint("the user must git switch to a branch")
	}
	b.Name = name
	return b, nil
}

// conflicts are the files in conflict.
func (s *state) conflicts() []string {
	var paths []string
	for _, e := range s.files {
		if e.Kind == porcelain.Unmerged {
			paths = append(paths, e.Path)
		}
	}
	return paths
}

// unresolved refuses a change while there are conflicts.
func (r *repository) unresolved(conflicts []string) *tool.Error {
	return tool.Errorf(tool.Conflict, "There are conflicts that are not resolved: %s", r.namesOf(conflicts)).
		WithHint("edit these files, then git_add and git_commit")
}

// head is HEAD as a person reads it.
func (s *state) head() string {
	switch {
	case s.Name == "":
		return "the detached HEAD at " + short(s.Commit)
	case s.Commit == "":
		return "the new branch " + tool.VisibleName(s.Name)
	default:
		return "branch " + tool.VisibleName(s.Name)
	}
}

// namesOf lists names on a line, a few of them, and counts forbidden files.
func (r *repository) namesOf(paths []string) string {
	const most = 10
	var names []string
	paths, forbidden := r.named(paths)
	for _, path := range paths[:min(len(paths), most)] {
		names = append(names, tool.VisibleName(r.show(path)))
	}
	if forbidden > 0 {
		names = append(names, plural(forbidden, "forbidden file"))
	}
	text := strings.Join(names, ", ")
	if len(paths) > most {
		text += ", and " + plural(len(paths)-most, "more file")
	}
	return text
}

// listed shows names one on a line, for a preview.
func (r *repository) listed(lines []string) []tool.Content {
	var b strings.Builder
	for _, line := range lines {
		if b.Len()+len(line) > maxPreview {
			return []tool.Content{tool.Text("NOT ALL IS SHOWN: there are " + plural(len(lines), "line")), tool.Text(b.String())}
		}
		b.WriteString(line + "\n")
	}
	if b.Len() == 0 {
		return nil
	}
	return []tool.Content{tool.Text(b.String())}
}
