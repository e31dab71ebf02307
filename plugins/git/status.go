package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type statusArgs struct {
	Path      string   `json:"path,omitempty" jsonschema:"repository" role:"path" alias:"repo" default:"."`
	Files     []string `json:"files,omitempty" jsonschema:"only these paths" role:"path" alias:"paths"`
	Untracked string   `json:"untracked,omitempty" jsonschema:"which to show" enum:"normal,all,no" default:"normal"`
	pageArgs
}

// Status is the state of a repository.
type Status struct {
	Repo     string       `json:"repo" jsonschema:"the repository's directory, relative to the workspace"`
	Branch   display.Name `json:"branch,omitempty" jsonschema:"the current branch; absent if HEAD is detached"`
	Detached bool         `json:"detached,omitempty" jsonschema:"HEAD points to a commit, not a branch"`
	Commit   string       `json:"commit,omitempty" jsonschema:"the commit of HEAD; absent if there is no commit yet"`
	Upstream display.Name `json:"upstream,omitempty" jsonschema:"the branch that the current one tracks"`
	Ahead    int          `json:"ahead,omitempty" jsonschema:"number of commits that the upstream lacks"`
	Behind   int          `json:"behind,omitempty" jsonschema:"number of commits that the current branch lacks"`
	Gone     bool         `json:"upstream_gone,omitempty" jsonschema:"the upstream does not exist"`
	Stashes  int          `json:"stashes,omitempty"`
	Doing    string       `json:"in_progress,omitempty" jsonschema:"the unfinished operation: merge, rebase, cherry-pick, revert or bisect"`
	Clean    bool         `json:"clean" jsonschema:"there are no changes and no untracked files"`

	Files      []FileStatus `json:"files"`
	Total      int          `json:"total" jsonschema:"number of all files in the list"`
	Conflicts  int          `json:"conflicts,omitempty" jsonschema:"number of files in conflict"`
	NextCursor sdk.Cursor   `json:"next_cursor,omitempty"`
}

// FileStatus is the state of a file.
type FileStatus struct {
	Path      display.Name `json:"path" jsonschema:"relative to the workspace; a directory ends in a slash"`
	From      display.Name `json:"from,omitempty" jsonschema:"the old path of a renamed file, or the source of a copy"`
	Index     string       `json:"index" jsonschema:"the staged change: . none, M modified, T type changed, A added, D deleted, R renamed, C copied, U in conflict"`
	Worktree  string       `json:"worktree" jsonschema:"the unstaged change, with the same letters; ? untracked"`
	Conflict  bool         `json:"conflict,omitempty"`
	Submodule bool         `json:"submodule,omitempty" jsonschema:"the file is a submodule; changes inside it are not reported"`
}

// Text implements [sdk.Texter].
func (s Status) Text() string {
	var b strings.Builder
	switch {
	case s.Detached:
		fmt.Fprintf(&b, "HEAD is detached at %s\n", short(s.Commit))
	case s.Commit == "":
		fmt.Fprintf(&b, "On branch %s, no commits yet\n", s.Branch)
	default:
		fmt.Fprintf(&b, "On branch %s at %s\n", s.Branch, short(s.Commit))
	}
	switch {
	case s.Gone:
		fmt.Fprintf(&b, "Upstream %s is gone\n", s.Upstream)
	case s.Upstream != "":
		fmt.Fprintf(&b, "Upstream %s: ahead %d, behind %d\n", s.Upstream, s.Ahead, s.Behind)
	}
	if s.Doing != "" {
		fmt.Fprintf(&b, "In progress: %s\n", s.Doing)
	}
	if s.Stashes > 0 {
		fmt.Fprintf(&b, "Stashes: %d\n", s.Stashes)
	}
	if s.Clean {
		b.WriteString("Nothing to commit, clean\n")
	}
	for _, f := range s.Files {
		fmt.Fprintf(&b, "%s%s %s", f.Index, f.Worktree, f.Path)
		if f.From != "" {
			fmt.Fprintf(&b, " (from %s)", f.From)
		}
		if f.Conflict {
			b.WriteString(" (conflict)")
		}
		b.WriteByte('\n')
	}
	if s.NextCursor != "" {
		b.WriteString(s.NextCursor.Note(fmt.Sprintf("%d files in all", s.Total)) + "\n")
	}
	return b.String()
}

func short(id string) string { return id[:min(len(id), 10)] }

// statusCommand returns the command for the state of the paths, or of all files without
// paths. renames is "--find-renames" or "--no-renames".
func statusCommand(renames, untracked string, paths ...string) command {
	args := []string{
		"status", "--porcelain=v2", "-z", "--branch", "--show-stash", "--untracked-files=" + untracked, "--ignored=no", renames,
		"--ahead-behind", ignoreSubmodules, "--",
	}
	return command{args: append(args, paths...)}
}

// maxListed limits the lists that git writes. They are parsed as they arrive.
const maxListed = tool.GiB

// status runs git_status.
func status(ctx context.Context, s *access, in statusArgs) (Status, error) {
	r, err := s.repository(ctx, in.Path)
	if err != nil {
		return Status{}, err
	}
	p := s.page(in.Limit, in.Cursor)
	result := Status{Repo: r.shown}
	parser := porcelain.NewStatus(func(e porcelain.Entry) {
		if r.forbidden(e.Path) {
			return
		}
		if r.forbidden(e.From) {
			e.From = ""
		}
		if e.Kind == porcelain.Unmerged {
			result.Conflicts++
		}
		f := FileStatus{
			Path: r.show(e.Path), From: r.show(e.From), Index: e.Index, Worktree: e.Worktree,
			Conflict: e.Kind == porcelain.Unmerged, Submodule: strings.HasPrefix(e.Submodule, "S"),
		}
		if p.take(sizeOfFile(&f)) {
			result.Files = append(result.Files, f)
		}
	})
	paths, err := r.chosen(in.Files)
	if err != nil {
		return Status{}, err
	}
	if err := r.read(ctx, statusCommand("--find-renames", in.Untracked, paths...), parser); err != nil {
		return Status{}, err
	}
	b, err := r.trueHead(parser.Branch)
	if err != nil {
		return Status{}, err
	}
	if p.seen == 0 {
		if err := r.refuseMissing(paths); err != nil {
			return Status{}, err
		}
	}
	result.Branch, result.Commit, result.Detached = display.Name(b.Name), b.Commit, b.Name == ""
	result.Upstream, result.Ahead, result.Behind, result.Gone = display.Name(b.Upstream), b.Ahead, b.Behind, b.Upstream != "" && !b.Tracked && b.Commit != ""
	result.Stashes, result.Total, result.NextCursor = b.Stashes, p.seen, p.next()
	result.Clean = p.seen == 0 && in.Untracked != "no"
	result.Doing = r.inProgress()
	return result, nil
}

// sizeOfFile returns the maximum size of an entry in a result, in bytes.
func sizeOfFile(f *FileStatus) int { return 90 + display.JSONSize(f.Path) + display.JSONSize(f.From) }

// unreadable returns the error for output of git that could not be parsed.
func unreadable(err error) *tool.Error {
	return tool.Errorf(tool.Failed, "The output of git is incomplete or unknown").
		WithHint("the repository may have changed meanwhile, so try again; if that does not help, the user can install another version of git").WithCause(err)
}
