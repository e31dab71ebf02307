package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk/sensitive"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxLeftOut is how many files a diff leaves out at most.
const maxLeftOut = 1000

// selection is what a diff compares: revisions and paths, without sensitive files.
type selection struct {
	states, paths []string
	// sensitive reports whether a file usually holds secrets, and is not one of the
	// paths: then a person was asked.
	sensitive func(file string) bool
	// leftOut are the files that are not compared.
	leftOut []string
}

// withoutSensitive selects what differs except for files that usually hold secrets,
// unless one of the paths names them: then a person was asked.
func (r *repository) withoutSensitive(states, paths []string) (*selection, error) {
	texts := r.settings.Secrets
	if texts == nil {
		texts = sensitive.Default()
	}
	secrets, err := sensitive.Parse(texts)
	if err != nil {
		return nil, err
	}
	return &selection{states: states, paths: paths, sensitive: func(file string) bool {
		named := func(path string) bool { return within(file, path) && secrets.Match(r.show(path)) }
		return secrets.Match(r.show(file)) && !slices.ContainsFunc(paths, named)
	}}, nil
}

// see leaves a sensitive file out of what is compared from now on.
func (s *selection) see(c porcelain.Change) {
	for _, file := range []string{c.From, c.Path} {
		if file != "" && len(s.leftOut) <= maxLeftOut && s.sensitive(file) && !slices.Contains(s.leftOut, file) {
			s.leftOut = append(s.leftOut, file)
		}
	}
}

// tooMany refuses more files than can be left out.
func (s *selection) tooMany() error {
	if len(s.leftOut) <= maxLeftOut {
		return nil
	}
	return tool.Errorf(tool.ResourceExhausted, "More than %d sensitive files differ, which cannot be left out one by one", maxLeftOut).WithHint("name files or directories")
}

// command compares what is selected.
func (s *selection) command(subcommand string, flags []string, output io.Writer, maxOutput tool.ByteSize) command {
	args := slices.Concat([]string{subcommand}, flags, s.states, []string{"--"})
	if len(s.leftOut) == 0 {
		return command{args: append(args, s.paths...), output: output, maxOutput: maxOutput}
	}
	for _, path := range s.paths {
		args = append(args, ":(top,literal)"+path)
	}
	for _, file := range s.leftOut {
		args = append(args, ":(top,exclude,literal)"+file)
	}
	return command{args: args, patterns: true, output: output, maxOutput: maxOutput}
}

// leftOutNote says how many files are not shown.
func leftOutNote(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("[%s left out; to see one, name it]\n", plural(n, "sensitive file"))
}
