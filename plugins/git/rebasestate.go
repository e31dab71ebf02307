package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// rebaseState is a rebase in progress. It is stored as git does in the directory
// rebase-merge, so that git itself can also finish or undo it.
type rebaseState struct {
	branch     string // the branch, or "" if HEAD was detached
	onto, orig string // the new base, and the commit that the branch is at
	stopped    string // the commit in conflict, or ""
	todo       []string
}

// rebaseFiles are the files of a rebase that the tool can continue and undo: those that
// it writes, and some that git adds. Others mean options, such as a stash to restore.
// usedFiles are the ones that it reads.
func rebaseFiles() []string {
	return append(usedFiles(), "done", "msgnum", "end", "interactive", "message", "author-script",
		"drop_redundant_commits", "no-reschedule-failed-exec", "git-rebase-todo.backup", "rewritten-list", "rewritten-pending", "patch", "quiet")
}

func usedFiles() []string {
	return []string{"head-name", "onto", "orig-head", "stopped-sha", "git-rebase-todo"}
}

const (
	rebaseDir   = "rebase-merge"
	stoppedFile = rebaseDir + "/stopped-sha"
	// maxRebaseFile is the maximum size of a file in rebaseDir that is read, in bytes.
	maxRebaseFile = 1 << 20
)

var objectID = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)

// rebaseState reads the rebase in progress. Its branch must be where it was.
func (r *repository) rebaseState(ctx context.Context) (*rebaseState, error) {
	if r.inProgress() != "rebase" {
		return nil, tool.Errorf(tool.NotFound, "No rebase is in progress").WithHint("git_status shows what is in progress")
	}
	root, err := os.OpenRoot(r.gitDir)
	if err != nil {
		return nil, badRepository("its git directory is unreadable").WithCause(err)
	}
	defer func() { _ = root.Close() }() // it holds nothing that could be lost
	info, err := root.Lstat(rebaseDir)
	if err != nil || !info.IsDir() {
		return nil, otherRebase()
	}
	entries, err := fs.ReadDir(root.FS(), rebaseDir)
	if err != nil {
		return nil, badRepository("its %s is unreadable", rebaseDir).WithCause(err)
	}
	found := map[string]string{}
	for _, entry := range entries {
		if !slices.Contains(rebaseFiles(), entry.Name()) {
			return nil, otherRebase()
		}
		if !slices.Contains(usedFiles(), entry.Name()) {
			continue // such as git's patch, which can be large
		}
		if found[entry.Name()], err = readIn(root, rebaseDir+"/"+entry.Name()); err != nil {
			return nil, badRepository("its %s/%s is unreadable", rebaseDir, entry.Name()).WithCause(err)
		}
	}
	s := &rebaseState{onto: found["onto"], orig: found["orig-head"], stopped: found["stopped-sha"]}
	s.todo = strings.FieldsFunc(found["git-rebase-todo"], func(c rune) bool { return c == '\n' })
	if !objectID.MatchString(s.onto) || !objectID.MatchString(s.orig) || s.stopped != "" && !objectID.MatchString(s.stopped) {
		return nil, otherRebase()
	}
	var branch bool
	if s.branch, branch = strings.CutPrefix(found["head-name"], "refs/heads/"); !branch {
		s.branch = ""
	}
	if !branch && found["head-name"] != detachedName {
		return nil, otherRebase()
	}
	return s, r.checkRebased(ctx, s)
}

// detachedName is git's head-name of a rebase without a branch.
const detachedName = "detached HEAD"

// readIn reads a regular file, without the line break at its end.
func readIn(root *os.Root, name string) (string, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxRebaseFile) {
		err = errors.New("it is not a regular file, or too large")
	}
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxRebaseFile))
	return strings.TrimRight(string(text), "\r\n"), err
}

func otherRebase() *tool.Error {
	return tool.Errorf(tool.Conflict, "The rebase in progress was started outside of this tool, with other options").
		WithHint("the user must finish it (git rebase --continue) or undo it (git rebase --abort)")
}

// checkRebased refuses a rebase whose branch has moved since it began.
func (r *repository) checkRebased(ctx context.Context, s *rebaseState) error {
	if s.branch == "" {
		return nil
	}
	if err := r.checkBranchName(ctx, s.branch); err != nil {
		return err
	}
	ref := "refs/heads/" + s.branch
	if err := r.refuseSymbolic(ctx, ref); err != nil {
		return err
	}
	if id, err := r.exact(ctx, ref); err != nil || id == s.orig {
		return err
	}
	return tool.Errorf(tool.Conflict, "The branch %s has moved since its rebase began", display.Name(s.branch)).
		WithHint("the user must end the rebase (git rebase --quit) and check the branch")
}

// before returns HEAD as it was before the rebase.
func (s *rebaseState) before() *state {
	return &state{Branch: porcelain.Branch{Name: s.branch, Commit: s.orig}}
}

// refuseElsewhere refuses a HEAD on another branch than the rebase's.
func (s *rebaseState) refuseElsewhere(head *state) error {
	if head.Name == "" || head.Name == s.branch {
		return nil
	}
	return tool.Errorf(tool.Conflict, "HEAD is on %s, but the rebase in progress is of %s", head.head(), s.before().head()).
		WithHint("the user must end the rebase (git rebase --quit)")
}

// rest returns the commits that remain. It accepts no other instructions than pick:
// others can run programs and move branches.
func (s *rebaseState) rest() ([]string, error) {
	var ids []string
	for _, line := range s.todo {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) < 2 || words[0] != "pick" || !objectID.MatchString(words[1]) {
			return nil, otherRebase()
		}
		ids = append(ids, words[1])
	}
	if s.stopped == "" {
		return nil, tool.Errorf(tool.Conflict, "The rebase in progress has not stopped at a conflict: a call may have been cut short").
			WithHint("undo it with git_rebase and abort")
	}
	if len(ids) >= maxReplayed {
		return nil, tool.Errorf(tool.ResourceExhausted, "The rebase in progress has more than %d commits left", maxReplayed).WithHint("the user must finish it (git rebase --continue)")
	}
	return ids, nil
}

// write records a rebase that stops at steps[at], all but the commit in conflict: see
// [repository.noteStopped].
func (s *rebaseState) write(r *repository, steps []step, at int) error {
	root, err := os.OpenRoot(r.gitDir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it holds nothing that could be lost
	if err := root.Mkdir(rebaseDir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	name := detachedName
	if s.branch != "" {
		name = "refs/heads/" + s.branch
	}
	by := &steps[at].source
	author := fmt.Sprintf("GIT_AUTHOR_NAME=%s\nGIT_AUTHOR_EMAIL=%s\nGIT_AUTHOR_DATE=%s\n", quote(by.author), quote(by.email), quote("@"+by.date))
	for _, file := range [][2]string{
		{"head-name", name + "\n"},
		{"onto", s.onto + "\n"},
		{"orig-head", s.orig + "\n"},
		{"interactive", ""},
		{"drop_redundant_commits", ""},
		{"no-reschedule-failed-exec", ""},
		{"done", picks(steps[:at+1])},
		{"git-rebase-todo", picks(steps[at+1:])},
		{"msgnum", fmt.Sprintln(at + 1)},
		{"end", fmt.Sprintln(len(steps))},
		{"message", by.message},
		{"author-script", author},
	} {
		if err := writeIn(root, rebaseDir+"/"+file[0], file[1]); err != nil {
			return err
		}
	}
	return nil
}

// noteStopped records the commit in conflict, or with "" that there is none.
func (r *repository) noteStopped(id string) error {
	root, err := os.OpenRoot(r.gitDir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it holds nothing that could be lost
	if id != "" {
		return writeIn(root, stoppedFile, id+"\n")
	}
	if err := root.Remove(stoppedFile); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// picks returns the steps as git's instructions.
func picks(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&b, "pick %s %s\n", s.id, display.Line(display.Cut(s.subject(), maxEcho)))
	}
	return b.String()
}

// writeIn writes a new file. A symbolic link of this name is replaced, not followed.
func writeIn(root *os.Root, name, text string) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// endRebase puts HEAD back on the branch, and removes the record of the rebase.
func (r *repository) endRebase(ctx context.Context, s *rebaseState) error {
	if s.branch != "" {
		args := []string{"symbolic-ref", "-m", "rebase: return to refs/heads/" + s.branch, "HEAD", "refs/heads/" + s.branch}
		if _, err := r.run(ctx, command{args: args, writes: true, env: r.anybody()}); err != nil {
			return err
		}
	}
	r.conclude()
	if err := r.forgetRebase(); err != nil {
		return tool.Errorf(tool.Unavailable, "The record of the rebase could not be removed").WithHint("the user must remove %s from .git", rebaseDir).WithCause(err)
	}
	return nil
}

// forgetRebase removes the record of the rebase.
func (r *repository) forgetRebase() error { return os.RemoveAll(filepath.Join(r.gitDir, rebaseDir)) }
