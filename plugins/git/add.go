package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type addArgs struct {
	Path  string   `json:"path,omitempty" jsonschema:"repository" role:"repository" alias:"repo"`
	Files []string `json:"files" jsonschema:"paths to stage" role:"path" alias:"paths"`
}

// adding is a call of git_add.
type adding struct {
	*repository
	changed
}

// changed lists the changes to stage.
type changed struct {
	paths []string
	lines []string // for a preview
	// nested are nested repositories, which are left out.
	nested []string
	// sensitive are sensitive files that the call does not name, which are left out.
	sensitive []string
	// filtered are files with a filter, such as those of git-lfs.
	filtered []string
}

// planAdd finds the changes that a call of git_add stages.
func planAdd(ctx context.Context, s *access, in addArgs) (change, error) {
	if len(in.Files) == 0 {
		return nil, tool.Errorf(tool.InvalidArgument, "files is empty").WithHint("name the files to stage, or the repository's directory to stage all changes")
	}
	r, err := s.unlocked(ctx, first(in.Path, in.Files))
	if err != nil {
		return nil, err
	}
	c := &adding{repository: r}
	paths, err := r.pathsOf(in.Files)
	if err != nil {
		return nil, err
	}
	if c.changed, err = r.toStage(ctx, nil, paths); err != nil {
		return nil, err
	}
	if len(c.paths) == 0 {
		return nil, tool.Errorf(tool.NotFound, "There is nothing to stage in %s", display.Names(in.Files)).
			WithHint("the files are unchanged, already staged, ignored by .gitignore, or missing; git_status lists changed files")
	}
	return c, nil
}

// first returns the path of the repository that a call names, or else its first file, or
// else the workspace.
func first(path string, files []string) string {
	return cmp.Or(slices.Concat([]string{path}, files, []string{"."})...)
}

// toStage finds the changes below the paths that are not in the index in env. It leaves
// out sensitive files that the call may not use, and refuses if there are no others.
func (r *repository) toStage(ctx context.Context, env, paths []string) (changed, error) {
	var c changed
	sensitive, err := r.sensitive()
	if err != nil {
		return c, err
	}
	s, err := r.lookAtIndex(ctx, env, "all", paths...)
	if err != nil {
		return c, err
	}
	for _, e := range s.files {
		switch {
		case r.forbidden(e.Path):
			continue // treated as missing
		case e.Kind == porcelain.Untracked && strings.HasSuffix(e.Path, "/"):
			c.nested = append(c.nested, e.Path)
			continue
		case e.Worktree == ".":
			continue // already staged
		case e.Worktree != "D" && sensitive(e.Path): // a deletion reveals nothing
			c.sensitive = append(c.sensitive, e.Path)
			continue
		}
		c.paths = append(c.paths, e.Path)
		c.lines = append(c.lines, fmt.Sprintf("%s %s", e.Worktree, r.show(e.Path)))
	}
	for _, path := range paths {
		missing := r.refuseMissing([]string{path})
		if missing != nil && !slices.ContainsFunc(s.files, func(e porcelain.Entry) bool { return within(e.Path, path) }) {
			return c, missing
		}
	}
	if len(c.paths) == 0 && len(c.sensitive) > 0 {
		return c, tool.Errorf(tool.PermissionDenied, "Only sensitive files have changed: %s", r.namesOf(c.sensitive)).
			WithHint("files with these names usually contain secrets; name a file to stage it, and the user is asked")
	}
	c.filtered, err = r.filtered(ctx, c.paths)
	return c, err
}

// filtered returns the files with a filter, which would change their content in git but
// does not run here.
func (r *repository) filtered(ctx context.Context, paths []string) ([]string, error) {
	return r.attributed(ctx, "filter", paths, func(value string) bool {
		return value != "unspecified" && value != "unset" && value != "set"
	})
}

// attributed returns the files whose attribute has a value that meant accepts.
func (r *repository) attributed(ctx context.Context, name string, paths []string, meant func(value string) bool) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	var found, record []string
	err := r.records(ctx, command{args: []string{"check-attr", "-z", "--stdin", name}, stdin: terminated(paths)}, func(field string) {
		if record = append(record, field); len(record) < 3 {
			return
		}
		if meant(record[2]) {
			found = append(found, record[0])
		}
		record = record[:0]
	})
	return found, err
}

// notes returns remarks about the staged files for the user.
func (c *changed) notes(r *repository) []string {
	var notes []string
	if len(c.filtered) > 0 {
		notes = append(notes, "[staged without the filter that .gitattributes sets, such as git-lfs: "+r.namesOf(c.filtered)+"]")
	}
	if len(c.sensitive) > 0 {
		notes = append(notes, "[sensitive files left out: "+r.namesOf(c.sensitive)+"; name a file to stage it]")
	}
	if len(c.nested) > 0 {
		notes = append(notes, "[nested repositories left out: "+r.namesOf(c.nested)+"]")
	}
	return notes
}

func (c *adding) State(context.Context) (string, error) {
	return stateOf(slices.Concat([]string{"git_add", c.gitDir}, c.lines)...), nil
}

func (c *adding) Show(context.Context) (string, []tool.Content, error) {
	return "Stages " + display.Plural(len(c.paths), "file") + " in " + c.place(), c.listed(append(c.notes(c.repository), c.lines...)), nil
}

func (c *adding) Apply(ctx context.Context) (tool.Result, error) {
	if _, err := c.run(ctx, updateIndex(c.paths)); err != nil {
		return tool.Result{}, err
	}
	text := strings.Join(append([]string{"Staged " + display.Plural(len(c.paths), "file") + ": " + c.namesOf(c.paths)}, c.notes(c.repository)...), "\n")
	return done(map[string]any{"repo": c.shown, "staged": len(c.paths)}, c.changedFiles(nil, "stage"), "%s", text), nil
}
