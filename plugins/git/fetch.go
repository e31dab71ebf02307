package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type fetchArgs struct {
	Path   string `json:"path,omitempty" jsonschema:"repository" role:"repository" alias:"repo" default:"."`
	Remote string `json:"remote,omitempty" jsonschema:"remote name"`
	Branch string `json:"branch,omitempty" jsonschema:"only this branch"`
	Prune  bool   `json:"prune,omitempty" jsonschema:"remove references that the remote deleted" default:"false"`
	Tags   bool   `json:"tags,omitempty" jsonschema:"also fetch tags" default:"false"`
}

// fetching is a call of git_fetch.
type fetching struct {
	*repository
	in    fetchArgs
	from  *remote
	specs []string
	// A clone fetches the tags of the commits that it gets, and can leave out old commits:
	// depth is the number of commits of each branch, or 0 for all.
	clones bool
	depth  int
}

// planFetch finds the remote and the branches of a call of git_fetch.
func planFetch(ctx context.Context, s *access, in fetchArgs) (change, error) {
	r, err := s.repository(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	branch, err := r.currentBranch(ctx)
	if err != nil {
		return nil, err
	}
	c := &fetching{repository: r, in: in}
	if c.from, err = r.remote(in.Remote, branch, false); err != nil {
		return nil, err
	}
	c.specs, err = r.fetchSpecs(ctx, c.from, in.Branch)
	return c, err
}

// fetchSpecs returns refspecs that map branches of the remote to local references. The local
// references are always below refs/remotes/NAME/, regardless of the configuration.
func (r *repository) fetchSpecs(ctx context.Context, from *remote, branch string) ([]string, error) {
	if branch != "" {
		if err := r.checkBranchName(ctx, branch); err != nil {
			return nil, err
		}
		return []string{"+refs/heads/" + branch + ":" + from.tracking(branch)}, nil
	}
	specs := r.config.all("remote", from.name, "fetch")
	for _, spec := range specs {
		source, to, _ := strings.Cut(strings.TrimPrefix(spec, "+"), ":")
		if !strings.HasPrefix(source, "refs/heads/") || !strings.HasPrefix(to, "refs/remotes/"+from.name+"/") {
			specs = nil
			break
		}
	}
	if len(specs) == 0 {
		return []string{"+refs/heads/*:" + from.tracking("*")}, nil
	}
	var forced []string // also moves references whose old commits the remote replaced
	for _, spec := range specs {
		forced = append(forced, "+"+strings.TrimPrefix(spec, "+"))
	}
	return forced, nil
}

func (c *fetching) State(context.Context) (string, error) {
	return stateOf(slices.Concat([]string{"git_fetch", c.gitDir, c.from.name, c.from.url, fmt.Sprint(c.in.Prune, c.in.Tags)}, c.specs)...), nil
}

func (c *fetching) Show(context.Context) (string, []tool.Content, error) {
	summary := fmt.Sprintf("Fetches from %s (%s) into %s", display.Name(c.from.name), display.Name(c.from.url), c.place())
	lines := []string{"Address: " + display.Name(c.from.url).String()}
	for _, spec := range c.specs {
		lines = append(lines, display.Name(spec).String())
	}
	return summary, c.listed(lines), nil
}

func (c *fetching) Apply(ctx context.Context) (tool.Result, error) {
	before, after, err := c.fetch(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	lines := movedReferences(before, after)
	text := "Fetched from " + display.Name(c.from.name).String()
	if len(lines) == 0 {
		text += ": no changes"
	}
	facts := map[string]any{"repo": c.shown, "remote": c.from.name, "url": c.from.url, "changed": len(lines)}
	const most = 200
	if more := len(lines) - most; more > 0 {
		lines = append(lines[:most], fmt.Sprintf("[%d more]", more))
	}
	return done(facts, c.changedFiles(nil, "fetch"), "%s", strings.Join(append([]string{text}, lines...), "\n")), nil
}

// fetch fetches the branches, and returns the references before and after.
func (c *fetching) fetch(ctx context.Context) (before, after map[string]string, err error) {
	before, symbolic, err := c.references(ctx, "refs/")
	if err != nil {
		return nil, nil, err
	}
	t, err := c.transfer(before)
	if err != nil {
		return nil, nil, err
	}
	defer t.Close()
	args := []string{ // no --quiet, which would hide the names of rejected tags
		"fetch", "--no-recurse-submodules", "--no-auto-maintenance", "--no-write-fetch-head", "--no-show-forced-updates", "--no-progress", "--refmap=",
	}
	switch {
	case c.in.Tags:
		args = append(args, "--tags")
	case !c.clones:
		args = append(args, "--no-tags")
	}
	if c.depth > 0 {
		args = append(args, fmt.Sprintf("--depth=%d", c.depth))
	}
	if c.in.Prune && c.in.Branch == "" {
		args = append(args, "--prune")
	}
	if _, err := t.runRemote(ctx, c.from, command{args: slices.Concat(args, []string{"--", c.from.url}, c.specs)}); err != nil {
		return nil, nil, err
	}
	if after, _, err = t.references(ctx, "refs/"); err != nil {
		return nil, nil, err
	}
	if head := c.from.tracking("HEAD"); symbolic[head] != "" { // the remote's default branch, not a branch itself
		delete(symbolic, head)
		delete(after, head)
	}
	for name, other := range symbolic {
		if after[name] != "" {
			return nil, nil, isSymbolic(name, other)
		}
	}
	if c.depth > 0 {
		if err := copyFile(filepath.Join(c.commonDir, "shallow"), filepath.Join(t.gitDir, "shallow")); err != nil {
			return nil, nil, err
		}
	}
	return before, after, c.move(ctx, before, after)
}

// move applies the changes of references to the repository. It deletes references first,
// since new ones may need their names. Each of the two steps is atomic, and fails if
// another process has changed one of its references; then move stops.
func (c *fetching) move(ctx context.Context, before, after map[string]string) error {
	var gone, moved strings.Builder
	for name, id := range before {
		if after[name] == "" {
			fmt.Fprintf(&gone, "delete %s %s\n", name, id)
		}
	}
	for name, id := range after {
		if old := cmp.Or(before[name], strings.Repeat("0", len(id))); old != id {
			fmt.Fprintf(&moved, "update %s %s %s\n", name, id, old)
		}
	}
	for _, changes := range []string{gone.String(), moved.String()} {
		if changes == "" {
			continue
		}
		args := []string{"update-ref", "--no-deref", "-m", "fetch", "--stdin"}
		if _, err := c.run(ctx, command{args: args, stdin: []byte(changes), writes: true, env: c.anybody()}); err != nil {
			return err
		}
	}
	return nil
}

// maxReferences is the maximum size of the list of references in bytes.
const maxReferences = 64 * tool.MiB

// references returns the object ids of the references with a prefix, and the targets of
// symbolic references.
func (r *repository) references(ctx context.Context, prefix string) (all, symbolic map[string]string, err error) {
	all, symbolic = map[string]string{}, map[string]string{}
	args := []string{"for-each-ref", "--format=%(objectname) %(refname) %(symref)", "--", prefix}
	out, err := r.run(ctx, command{args: args, maxOutput: maxReferences})
	if err != nil {
		return nil, nil, err
	}
	for _, line := range out.lines() {
		switch words := strings.Split(line, " "); { // a name can contain other kinds of space
		case len(words) != 3:
		case words[2] != "":
			symbolic[words[1]] = words[2]
		default:
			all[words[1]] = words[0]
		}
	}
	return all, symbolic, nil
}

// movedReferences describes the changes of references.
func movedReferences(before, after map[string]string) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		switch old, is := before[name], after[name]; {
		case old == "":
			lines = append(lines, fmt.Sprintf("new %s at %s", display.Name(name), short(is)))
		case old != is:
			lines = append(lines, fmt.Sprintf("%s: %s to %s", display.Name(name), short(old), short(is)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] == "" {
			lines = append(lines, "deleted "+display.Name(name).String())
		}
	}
	return lines
}
