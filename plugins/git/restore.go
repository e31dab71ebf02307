package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type restoreArgs struct {
	Path   string   `json:"path,omitempty" jsonschema:"repository" role:"repository" alias:"repo"`
	Files  []string `json:"files" jsonschema:"paths" role:"path" alias:"paths"`
	Where  string   `json:"where,omitempty" jsonschema:"index unstages" enum:"files,index,both" default:"files"`
	Source string   `json:"source,omitempty" jsonschema:"revision, if not the index"`
}

// restoring is a call of git_restore.
type restoring struct {
	*repository
	paths  []string
	where  string
	source string // an object id, or "" for the index
	lost   *undone
	files  []string
}

// planRestore finds the changes that a call of git_restore discards.
func planRestore(ctx context.Context, s *access, in restoreArgs) (change, error) {
	if len(in.Files) == 0 {
		return nil, tool.Errorf(tool.InvalidArgument, "files is empty").WithHint("name the files to restore, or the repository's directory to restore all")
	}
	r, err := s.unlocked(ctx, first(in.Path, in.Files))
	if err != nil {
		return nil, err
	}
	c := &restoring{repository: r, where: in.Where}
	if c.paths, err = r.pathsOf(in.Files); err != nil {
		return nil, err
	}
	if in.Source == "" && in.Where != "files" {
		in.Source = "HEAD"
	}
	if in.Source != "" {
		if c.source, err = r.commit(ctx, in.Source); err != nil {
			return nil, err
		}
	}
	if c.lost, err = r.undo(ctx, in.Where, c.source, c.paths); err != nil {
		return nil, err
	}
	c.files = c.lost.files
	if len(c.files) == 0 {
		return nil, tool.Errorf(tool.NotFound, "There is nothing to restore in %s", display.Names(in.Files)).
			WithHint("the files are unchanged or untracked; git_status lists changed files")
	}
	if in.Where != "index" {
		if err := r.refuseProtected(c.files); err != nil {
			return nil, err
		}
	}
	if in.Where != "index" && c.source != "" {
		if err := r.refuseLoss(ctx, c.source, c.files); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *restoring) State(context.Context) (string, error) {
	return stateOf("git_restore", c.gitDir, c.where, c.source, strings.Join(c.paths, "\x00"), c.lost.digest()), nil
}

func (c *restoring) Show(context.Context) (string, []tool.Content, error) {
	what := map[string]string{"files": "Discards changes to", "index": "Unstages", "both": "Discards changes, including staged ones, to"}[c.where]
	return fmt.Sprintf("%s %s in %s", what, display.Plural(len(c.files), "file"), c.place()), c.lost.content(), nil
}

func (c *restoring) Apply(ctx context.Context) (tool.Result, error) {
	args := []string{"restore", "--no-recurse-submodules", "--no-progress", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul"}
	if c.where != "files" {
		args = append(args, "--staged")
	}
	if c.where != "index" {
		args = append(args, "--worktree")
	}
	if c.source != "" {
		args = append(args, "--source="+c.source)
	}
	if _, err := c.run(ctx, command{args: args, stdin: terminated(c.paths), writes: true}); err != nil {
		return tool.Result{}, err
	}
	did := map[string]string{"files": "Restored", "index": "Unstaged", "both": "Restored and unstaged"}[c.where]
	facts := map[string]any{"repo": c.shown, "files": len(c.files)}
	effects := c.changedFiles(nil, "unstage")
	if c.where != "index" {
		effects = c.changedFiles(c.files, "restore")
	}
	return done(facts, effects, "%s %s: %s", did, display.Plural(len(c.files), "file"), c.namesOf(c.files)), nil
}
