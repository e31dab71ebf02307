package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk/sensitive"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxLeftOut is how many files a diff leaves out at most.
const maxLeftOut = 1000

// selection is what a diff compares: revisions and paths.
type selection struct {
	args []string
	// patterns says that the paths among args are written as git's patterns.
	patterns bool
	// leftOut is how many sensitive files are not among them.
	leftOut int
}

// withoutSensitive selects what differs except for files that usually hold secrets,
// unless one of the paths names them: then a person was asked.
func (r *repository) withoutSensitive(ctx context.Context, subcommand string, states, paths []string) (selection, error) {
	all := selection{args: slices.Concat(states, []string{"--"}, paths)}
	texts := r.settings.Secrets
	if texts == nil {
		texts = sensitive.Default()
	}
	secrets, err := sensitive.Parse(texts)
	if err != nil {
		return all, err
	}
	var left []string
	records := porcelain.NewRecords(func(record []byte) error {
		file := string(record)
		named := func(path string) bool { return within(file, path) && secrets.Match(r.show(path)) }
		if len(left) <= maxLeftOut && secrets.Match(r.show(file)) && !slices.ContainsFunc(paths, named) && !slices.Contains(left, file) {
			left = append(left, file)
		}
		return nil
	})
	names := slices.Concat([]string{subcommand, "--name-only", "-z"}, diffFlags(), []string{"--no-renames"}, all.args)
	if _, err := r.run(ctx, command{args: names, output: records, maxOutput: tool.TiB}); err != nil {
		return all, err
	}
	if err := records.Close(); err != nil {
		return all, unreadable(err)
	}
	switch {
	case len(left) == 0:
		return all, nil
	case len(left) > maxLeftOut:
		return all, tool.Errorf(tool.ResourceExhausted, "More than %d sensitive files differ, which cannot be left out one by one", maxLeftOut).WithHint("name files or directories")
	}
	some := selection{args: append(slices.Clone(states), "--"), patterns: true, leftOut: len(left)}
	for _, path := range paths {
		some.args = append(some.args, ":(top,literal)"+path)
	}
	for _, file := range left {
		some.args = append(some.args, ":(top,exclude,literal)"+file)
	}
	return some, nil
}

// leftOutNote says how many files are not shown.
func leftOutNote(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("[%s left out; to see one, name it]\n", plural(n, "sensitive file"))
}
