package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// source is a commit that git applies or concludes: what a new commit takes from it.
type source struct {
	id, tree            string
	parents             []string
	author, email, date string
	message             string
}

// subject returns the first line of the message.
func (s *source) subject() string {
	subject, _, _ := strings.Cut(s.message, "\n")
	return subject
}

// authored returns git's environment for a commit with the author of another one.
func (i identity) authored(by *source) []string {
	return []string{
		"GIT_AUTHOR_NAME=" + by.author, "GIT_AUTHOR_EMAIL=" + by.email, "GIT_AUTHOR_DATE=@" + by.date,
		"GIT_COMMITTER_NAME=" + i.name, "GIT_COMMITTER_EMAIL=" + i.email,
	}
}

// sources reads commits by their object ids, in this order.
func (r *repository) sources(ctx context.Context, ids ...string) ([]source, error) {
	found := map[string]source{} // git lists a commit once, however often it is named
	var f []string
	args := []string{
		"log", "-z", "--no-walk=unsorted", "--stdin", "--date=raw", "--format=tformat:%H%x00%T%x00%P%x00%an%x00%ae%x00%ad%x00%B", "--no-color",
		"--no-show-signature", "--no-mailmap", "--no-notes", "--no-patch",
	}
	err := r.records(ctx, command{args: args, stdin: []byte(strings.Join(ids, "\n") + "\n")}, func(field string) {
		if f = append(f, field); len(f) == 7 {
			found[f[0]] = source{id: f[0], tree: f[1], parents: strings.Fields(f[2]), author: f[3], email: f[4], date: f[5], message: f[6]}
			f = nil
		}
	})
	if err != nil {
		return nil, err
	}
	var all []source
	for _, id := range ids {
		s, ok := found[id]
		if !ok {
			return nil, unreadable(fmt.Errorf("the commit %s is not listed", id))
		}
		all = append(all, s)
	}
	return all, nil
}

// headFile returns the file that names the commit of an operation in progress.
func headFile(doing string) string {
	return map[string]string{"merge": "MERGE_HEAD", "cherry-pick": "CHERRY_PICK_HEAD", "revert": "REVERT_HEAD", "rebase": "REBASE_HEAD"}[doing]
}

// note records an operation in progress as git does, so that git itself can also finish
// it.
func (r *repository) note(doing, id, message string) error {
	for name, text := range map[string]string{headFile(doing): id + "\n", "MERGE_MSG": message} {
		if err := r.replaceFile(name, text); err != nil {
			return tool.Errorf(tool.Unavailable, "The state of the %s could not be written", doing).WithHint("undo it with git_reset and mode merge").WithCause(err)
		}
	}
	return nil
}

// replaceFile writes a file of the git directory. A symbolic link of this name is
// replaced, not followed.
func (r *repository) replaceFile(name, text string) error {
	file, err := os.CreateTemp(r.gitDir, name+".")
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(r.gitDir, name))
	}
	if err != nil {
		_ = os.Remove(file.Name()) // it is temporary
	}
	return err
}
