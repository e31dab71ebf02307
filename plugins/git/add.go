package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk/tool"
)

type addArgs struct {
	Path  string   `json:"path,omitempty" jsonschema:"the repository, relative to the workspace; without it, that of the first file" role:"path" alias:"repo"`
	Files []string `json:"files" jsonschema:"files and directories to stage as they are, deletions too, relative to the workspace" role:"path"`
}

// adding is a call of git_add.
type adding struct {
	*repository
	changed
}

// changed is what of some files is to be staged.
type changed struct {
	paths []string
	lines []string // for a preview
	// nested are repositories below, which are left out.
	nested []string
	// sensitive are files that usually hold secrets and that no path names, left out too.
	sensitive []string
	// filtered are files that a filter would change, such as those of git-lfs.
	filtered []string
}

// planAdd looks at what a call of git_add would stage.
func planAdd(ctx context.Context, s *access, in addArgs) (change, error) {
	if len(in.Files) == 0 {
		return nil, tool.Errorf(tool.InvalidArgument, "files is empty").WithHint("name the files to stage; the repository's directory stands for all")
	}
	r, err := s.repositoryOf(ctx, in.Path, in.Files)
	if err != nil {
		return nil, err
	}
	if err := r.refuseLocked(); err != nil {
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
		return nil, tool.Errorf(tool.NotFound, "There is nothing to stage in %s", shownNames(in.Files)).
			WithHint("the files are unchanged or staged already, ignored by .gitignore, or not there; git_status lists what has changed")
	}
	return c, nil
}

// repositoryOf opens the repository that a call names, else that of its first file.
func (s *access) repositoryOf(ctx context.Context, path string, files []string) (*repository, error) {
	if path == "" {
		path = "."
		if len(files) > 0 {
			path = files[0]
		}
	}
	return s.repository(ctx, path)
}

// shownNames lists names on a line, a few of them.
func shownNames(names []string) string {
	const most = 10
	var shown []string
	for _, name := range names[:min(len(names), most)] {
		shown = append(shown, tool.VisibleName(name))
	}
	if more := len(names) - most; more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(shown, ", ")
}

// toStage finds what of the files is not in the index that the environment names. It
// leaves sensitive files out that the call may not use, and refuses if there are only such.
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
			continue // it is as if it were not there
		case e.Kind == porcelain.Untracked && strings.HasSuffix(e.Path, "/"):
			c.nested = append(c.nested, e.Path)
			continue
		case e.Worktree == ".":
			continue // it is staged
		case e.Worktree != "D" && sensitive(e.Path): // that it is gone tells nothing of it
			c.sensitive = append(c.sensitive, e.Path)
			continue
		}
		c.paths = append(c.paths, e.Path)
		c.lines = append(c.lines, fmt.Sprintf("%s %s", e.Worktree, tool.VisibleName(r.show(e.Path))))
	}
	for _, path := range paths {
		missing := r.refuseMissing([]string{path})
		if missing != nil && !slices.ContainsFunc(s.files, func(e porcelain.Entry) bool { return within(e.Path, path) }) {
			return c, missing
		}
	}
	if len(c.paths) == 0 && len(c.sensitive) > 0 {
		return c, tool.Errorf(tool.PermissionDenied, "Only sensitive files have changed: %s", r.namesOf(c.sensitive)).
			WithHint("files of these names usually hold secrets; to stage one, name it, and the user is asked")
	}
	c.filtered, err = r.filtered(ctx, c.paths)
	return c, err
}

// filtered are the files of which git would keep something else than they hold, by a
// filter that is not run here.
func (r *repository) filtered(ctx context.Context, paths []string) ([]string, error) {
	return r.attributed(ctx, "filter", paths, func(value string) bool {
		return value != "unspecified" && value != "unset" && value != "set"
	})
}

// attributed are the files of which an attribute has a value that is meant.
func (r *repository) attributed(ctx context.Context, name string, paths []string, meant func(value string) bool) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	var found, record []string
	records := porcelain.NewRecords(func(field []byte) error {
		if record = append(record, string(field)); len(record) < 3 {
			return nil
		}
		if meant(record[2]) {
			found = append(found, record[0])
		}
		record = record[:0]
		return nil
	})
	_, err := r.run(ctx, command{
		args: []string{"check-attr", "-z", "--stdin", name}, stdin: []byte(strings.Join(paths, "\x00") + "\x00"), output: records, maxOutput: maxListed,
	})
	if err != nil {
		return nil, err
	}
	if err := records.Close(); err != nil {
		return nil, unreadable(err)
	}
	return found, nil
}

// notes say what a person should know of what is staged.
func (c *changed) notes(r *repository) []string {
	var notes []string
	if len(c.filtered) > 0 {
		notes = append(notes, "[staged as they are, without the filter that .gitattributes names, such as git-lfs: "+r.namesOf(c.filtered)+"]")
	}
	if len(c.sensitive) > 0 {
		notes = append(notes, "[left out, since they are sensitive files, which a directory does not stand for: "+r.namesOf(c.sensitive)+"; to stage one, name it]")
	}
	if len(c.nested) > 0 {
		notes = append(notes, "[left out, since they are repositories of their own: "+r.namesOf(c.nested)+"]")
	}
	return notes
}

func (c *adding) state() string {
	return stateOf(slices.Concat([]string{"git_add", c.gitDir}, c.lines)...)
}

func (c *adding) show(context.Context) (string, []tool.Content, error) {
	return "Stages " + plural(len(c.paths), "file") + " in " + c.place(), c.listed(append(c.notes(c.repository), c.lines...)), nil
}

func (c *adding) make(ctx context.Context) (tool.Result, error) {
	if _, err := c.run(ctx, updateIndex(c.paths)); err != nil {
		return tool.Result{}, err
	}
	text := strings.Join(append([]string{"Staged " + plural(len(c.paths), "file") + ": " + c.namesOf(c.paths)}, c.notes(c.repository)...), "\n")
	return done(map[string]any{"repo": c.shown, "staged": len(c.paths)}, c.changedFiles(nil, "stage"), "%s", text), nil
}
