package main

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxHeld is the maximum number of files in a change.
const maxHeld = 200_000

// state is the state of a repository: its branch and its changed files.
type state struct {
	porcelain.Branch
	files []porcelain.Entry
}

// lookAt lists the changed files below the paths, or all of them without paths. A
// renamed file is two entries.
func (r *repository) lookAt(ctx context.Context, untracked string, paths ...string) (*state, error) {
	return r.lookAtIndex(ctx, nil, untracked, paths...)
}

// lookAtIndex is lookAt with the index in env.
func (r *repository) lookAtIndex(ctx context.Context, env []string, untracked string, paths ...string) (*state, error) {
	s := &state{}
	parser := porcelain.NewStatus(func(e porcelain.Entry) {
		if len(s.files) <= maxHeld {
			s.files = append(s.files, e)
		}
	})
	c := statusCommand("--no-renames", untracked, paths...)
	c.env = env
	if err := r.read(ctx, c, parser); err != nil {
		return nil, err
	}
	if len(s.files) > maxHeld {
		return nil, tool.Errorf(tool.ResourceExhausted, "More than %d files have changed", maxHeld).WithHint("name files or directories")
	}
	var err error
	s.Branch, err = r.trueHead(parser.Branch)
	return s, err
}

// trueHead returns the branch of a status. If the status is ambiguous because a branch
// has a name such as "(detached)", trueHead reads the name from HEAD.
func (r *repository) trueHead(b porcelain.Branch) (porcelain.Branch, error) {
	if b.Name != "" && b.Name != "(null)" {
		return b, nil
	}
	text, err := readSmall(filepath.Join(r.gitDir, "HEAD"))
	if err != nil {
		return b, badRepository("its HEAD is unreadable").WithCause(err)
	}
	ref, symbolic := strings.CutPrefix(text, "ref: ")
	if !symbolic {
		return b, nil // it is detached
	}
	name, branch := strings.CutPrefix(ref, "refs/heads/")
	if !branch {
		return b, tool.Errorf(tool.Failed, "HEAD is %s, which is not a branch", display.Name(display.Cut(ref, maxEcho))).WithHint("the user must switch to a branch (git switch)")
	}
	if status := cmp.Or(b.Name, "(detached)"); status != name {
		return b, tool.Errorf(tool.Failed, "HEAD is %s, which does not lead to a branch", display.Name(display.Cut(ref, maxEcho))).WithHint("the user must switch to a branch (git switch)")
	}
	b.Name = name
	return b, nil
}

// conflicts returns the files in conflict.
func (s *state) conflicts() []string {
	var paths []string
	for _, e := range s.files {
		if e.Kind == porcelain.Unmerged {
			paths = append(paths, e.Path)
		}
	}
	return paths
}

// unresolved returns the error for a change while there are conflicts.
func (r *repository) unresolved(conflicts []string) *tool.Error {
	err := tool.Errorf(tool.Conflict, "There are unresolved conflicts: %s", r.namesOf(conflicts))
	if r.inProgress() == "rebase" {
		return err.WithHint(rebaseHint)
	}
	return err.WithHint("edit these files, then git_add and git_commit")
}

// head describes HEAD.
func (s *state) head() string {
	switch {
	case s.Name == "":
		return "the detached HEAD at " + short(s.Commit)
	case s.Commit == "":
		return "the new branch " + display.Name(s.Name).String()
	default:
		return "branch " + display.Name(s.Name).String()
	}
}

// namesOf lists up to ten paths on one line, relative to the workspace. It counts
// forbidden files instead of naming them.
func (r *repository) namesOf(paths []string) string {
	paths, forbidden := r.named(paths)
	var shown []display.Name
	for _, path := range paths {
		shown = append(shown, r.show(path))
	}
	text := display.Names(shown)
	if forbidden == 0 {
		return text
	}
	return strings.TrimPrefix(text+", "+display.Plural(forbidden, "forbidden file"), ", ")
}

// listed joins lines for a preview.
func (r *repository) listed(lines []string) []tool.Content {
	var b strings.Builder
	for _, line := range lines {
		if b.Len()+len(line) > maxPreview {
			return []tool.Content{tool.Text("NOT ALL IS SHOWN: there are " + display.Plural(len(lines), "line")), tool.Text(b.String())}
		}
		b.WriteString(line + "\n")
	}
	if b.Len() == 0 {
		return nil
	}
	return []tool.Content{tool.Text(b.String())}
}
