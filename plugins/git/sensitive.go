package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/forbidden"
	"github.com/toolhost/toolhost/sdk/sensitive"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxLeftOut is the maximum number of files that a diff leaves out.
const maxLeftOut = 1000

// selection is the input of a diff: revisions and paths, without some files.
type selection struct {
	states, paths []string
	// hides reports whether a file must not be shown.
	hides func(file string) bool
	// leftOut are the files that are not compared.
	leftOut []string
}

// withoutSensitive returns a selection without forbidden files and without sensitive
// files that the call may not use.
func (r *repository) withoutSensitive(states, paths []string) (*selection, error) {
	sensitive, err := r.sensitive()
	return &selection{states: states, paths: paths, hides: sensitive}, err
}

// selectAllowed returns a selection without forbidden files.
func (r *repository) selectAllowed(states, paths []string) *selection {
	return &selection{states: states, paths: paths, hides: r.forbidden}
}

// sensitive returns a function that reports whether a path of the worktree is forbidden,
// or is sensitive and the call may not use it.
func (r *repository) sensitive() (func(path string) bool, error) {
	policy := r.call.Files()
	patterns, err := sensitive.Parse(policy.Sensitive)
	if err != nil {
		return nil, err
	}
	folder := r.folderOf(r.worktree)
	return func(path string) bool {
		abs := filepath.Join(r.worktree, path)
		if r.forbidden(path) {
			return true
		}
		_, covered := patterns.Find(abs, folder)
		return covered && !slices.ContainsFunc(policy.Allowed, func(allowed string) bool { return within(abs, allowed) })
	}, nil
}

// folderOf returns the deepest folder of the workspace that contains a path, real or as
// spelled, or "".
func (r *repository) folderOf(path string) (deepest string) {
	for _, f := range r.folders {
		for _, dir := range []string{f.real, f.given} {
			if within(path, dir) && len(dir) > len(deepest) {
				deepest = dir
			}
		}
	}
	return deepest
}

// refuseCovered returns an error if the directory of a remote is forbidden, or is sensitive
// and the call may not use it, by its real path or by its path as spelled.
func (r *repository) refuseCovered(remote, spelled, real string) error {
	policy := r.call.Files()
	patterns, err := sensitive.Parse(policy.Sensitive)
	if err != nil {
		return err
	}
	for _, path := range []string{filepath.Clean(spelled), real} {
		_, covered := patterns.Find(path, r.folderOf(path))
		covered = covered && !slices.ContainsFunc(policy.Allowed, func(allowed string) bool { return within(path, allowed) })
		if covered || forbidden.Patterns(policy.Forbidden).Covers(path) {
			return tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: the repository of the remote %s", display.Name(remote)).
				WithHint("the path is forbidden, or directories with this name usually contain secrets; name another repository")
		}
	}
	return nil
}

// refuseSensitive returns an error if the call may not see the focus.
func (r *repository) refuseSensitive() error {
	sensitive, err := r.sensitive()
	if err != nil || !sensitive(r.focus) {
		return err
	}
	return tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: %s", r.show(r.focus)).
		WithHint("files with this name usually contain secrets; ask the user for the information that you need from it")
}

// see adds the files of a change to leftOut if they must not be shown.
func (s *selection) see(c porcelain.Change) { s.leaveOut(c.From, c.Path) }

func (s *selection) leaveOut(files ...string) {
	for _, file := range files {
		if file != "" && len(s.leftOut) <= maxLeftOut && s.hides(file) && !slices.Contains(s.leftOut, file) {
			s.leftOut = append(s.leftOut, file)
		}
	}
}

// tooMany returns an error if there are more than maxLeftOut files to leave out.
func (s *selection) tooMany() error {
	if len(s.leftOut) <= maxLeftOut {
		return nil
	}
	return tool.Errorf(tool.ResourceExhausted, "More than %d sensitive or forbidden files differ, too many to leave out", maxLeftOut).WithHint("name files or directories")
}

// command returns the command that compares the selection.
func (s *selection) command(subcommand string, flags []string, output io.Writer, maxOutput tool.ByteSize) command {
	args := slices.Concat([]string{subcommand}, flags, s.states, []string{"--"})
	if len(s.leftOut) == 0 {
		return command{args: append(args, s.paths...), output: output, maxOutput: maxOutput}
	}
	for _, path := range s.paths {
		if path == "." {
			path = "" // the worktree in git's patterns
		}
		args = append(args, ":(top,literal)"+path)
	}
	for _, file := range s.leftOut {
		args = append(args, ":(top,exclude,literal)"+file)
	}
	return command{args: args, patterns: true, output: output, maxOutput: maxOutput}
}

// leftOutNote reports how many files are left out.
func leftOutNote(sensitive, forbidden int) (note string) {
	if sensitive > 0 {
		note = fmt.Sprintf("[%s left out; name a file to see it]\n", display.Plural(sensitive, "sensitive file"))
	}
	if forbidden > 0 {
		note += fmt.Sprintf("[%s left out]\n", display.Plural(forbidden, "forbidden file"))
	}
	return note
}
