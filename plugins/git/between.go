package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxBetween is the number of commits that a preview lists.
const maxBetween = 50

// between lists the commits that are in the history of to but not of from, newest first.
// It returns at most maxBetween+1.
func (r *repository) between(ctx context.Context, to string, from ...string) ([]Commit, error) {
	if to == "" || slices.Contains(from, to) {
		return nil, nil
	}
	var input strings.Builder // there may be too many for arguments
	input.WriteString(to + "\n")
	for _, id := range from {
		input.WriteString("^" + id + "\n")
	}
	var found []Commit
	records := porcelain.NewCommits(func(c porcelain.Commit) error {
		found = append(found, newCommit(c, 200))
		return nil
	})
	err := r.read(ctx, command{args: commitLog(maxBetween+1, "--stdin"), stdin: []byte(input.String())}, records)
	return found, err
}

// countOf describes the number of commits in a list from between.
func countOf(commits []Commit) string {
	if len(commits) > maxBetween {
		return fmt.Sprintf("more than %d commits", maxBetween)
	}
	return display.Plural(len(commits), "commit")
}

// commitsLeft lists commits from between for a preview.
func commitsLeft(title string, commits []Commit) []tool.Content {
	if len(commits) == 0 {
		return nil
	}
	lines := []string{title}
	for i, c := range commits {
		if i == maxBetween {
			lines = append(lines, "  [and more]")
			break
		}
		lines = append(lines, "  "+c.line())
	}
	return []tool.Content{tool.Text(strings.Join(lines, "\n") + "\n")}
}
