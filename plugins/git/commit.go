package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type commitArgs struct {
	Path    string   `json:"path,omitempty" jsonschema:"repository" role:"repository" alias:"repo"`
	Message string   `json:"message" jsonschema:"subject, empty line, text"`
	Files   []string `json:"files,omitempty" jsonschema:"paths, if not the staged changes" role:"path" alias:"paths"`
}

// committing is a call of git_commit.
type committing struct {
	*repository
	changed
	message string
	author  identity
	only    bool // files were named

	head    *state
	parents []string // HEAD, then the merged commits
	doing   string   // the operation that the commit concludes, or ""
	picked  *source  // the commit that a cherry-pick or revert applies, or nil
	tree    string
	diff    *porcelain.Changes
	patch   *preview
}

// identity is the author and committer of new commits.
type identity struct{ name, email string }

// planCommit builds the tree of a call of git_commit.
func planCommit(ctx context.Context, s *access, in commitArgs) (change, error) {
	message, err := cleanMessage(in.Message)
	if err != nil {
		return nil, err
	}
	r, err := s.unlocked(ctx, first(in.Path, in.Files))
	if err != nil {
		return nil, err
	}
	c := &committing{repository: r, message: message, only: len(in.Files) > 0}
	if c.author, err = r.identity(); err != nil {
		return nil, err
	}
	if err := c.look(ctx, in.Files); err != nil {
		return nil, err
	}
	return c, nil
}

// maxMessage is the maximum size of a commit message in bytes.
const maxMessage = 64 << 10

// cleanMessage removes spaces at line ends and surrounding empty lines.
func cleanMessage(text string) (string, error) {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimRight(line, " \t\r\n"))
	}
	text = strings.TrimSpace(strings.Join(lines, "\n"))
	switch {
	case text == "":
		return "", tool.Errorf(tool.InvalidArgument, "message is empty").WithHint("describe in one line what the commit changes and why")
	case len(text) > maxMessage || strings.ContainsRune(text, 0) || !utf8.ValidString(text):
		return "", tool.Errorf(tool.InvalidArgument, "message is longer than %d bytes, or not UTF-8 text", maxMessage)
	}
	return text + "\n", nil
}

// identity returns the identity of the settings, or else of the repository's
// configuration.
func (r *repository) identity() (identity, error) {
	who := identity{r.settings.AuthorName, r.settings.AuthorEmail}
	if who.name == "" {
		who = identity{r.config.last("user", "", "name"), r.config.last("user", "", "email")}
	}
	if who.name == "" || who.email == "" {
		return who, tool.Errorf(tool.Failed, "There is no identity for commits").
			WithHint(identityHint)
	}
	return who, nil
}

// environment returns git's environment variables for the identity.
func (i identity) environment() []string {
	return []string{"GIT_AUTHOR_NAME=" + i.name, "GIT_AUTHOR_EMAIL=" + i.email, "GIT_COMMITTER_NAME=" + i.name, "GIT_COMMITTER_EMAIL=" + i.email}
}

// look builds the tree of the commit in a temporary index.
func (c *committing) look(ctx context.Context, files []string) (err error) {
	if c.head, err = c.lookAt(ctx, "no"); err != nil {
		return err
	}
	if conflicts := c.head.conflicts(); len(conflicts) > 0 {
		return c.unresolved(conflicts)
	}
	switch c.doing = c.inProgress(); {
	case c.doing == "bisect":
		c.doing = ""
	case c.doing == "rebase":
		return unfinished(c.doing)
	case c.doing != "" && c.only:
		return tool.Errorf(tool.Conflict, "A %s is in progress and can only be committed as a whole", c.doing).WithHint("git_add the files, then git_commit without files")
	}
	if err := c.findParents(ctx); err != nil {
		return err
	}
	x, err := c.newIndex()
	if err != nil {
		return err
	}
	defer x.Close()
	if err := c.fill(ctx, x, files); err != nil {
		return err
	}
	if c.tree, err = x.tree(ctx); err != nil {
		return err
	}
	return c.compare(ctx, x)
}

// findParents finds the parents of the commit, and its author if it concludes a
// cherry-pick.
func (c *committing) findParents(ctx context.Context) error {
	if c.head.Commit != "" {
		c.parents = []string{c.head.Commit}
	}
	if c.doing == "" {
		return nil
	}
	text, err := readSmall(filepath.Join(c.gitDir, headFile(c.doing)))
	if err != nil {
		return badRepository("its %s is unreadable", headFile(c.doing)).WithCause(err)
	}
	ids, err := c.commits(ctx, strings.Fields(text)...)
	if err != nil || c.doing == "merge" {
		c.parents = append(c.parents, ids...)
		return err
	}
	if len(ids) != 1 {
		return badRepository("its %s does not name one commit", headFile(c.doing))
	}
	all, err := c.sources(ctx, ids[0])
	if err == nil {
		c.picked = &all[0]
	}
	return err
}

// authorship returns the author in git's environment.
func (c *committing) authorship() []string {
	if c.doing == "cherry-pick" {
		return c.author.authored(c.picked)
	}
	return c.author.environment()
}

// fill adds the changes to commit to the index.
func (c *committing) fill(ctx context.Context, x *privateIndex, files []string) error {
	if !c.only {
		return x.copy()
	}
	paths, err := c.pathsOf(files)
	if err != nil {
		return err
	}
	if c.head.Commit != "" {
		if _, err := x.run(ctx, command{args: []string{"read-tree", c.head.Commit}}); err != nil {
			return err
		}
		if err := c.leaveOut(ctx, x); err != nil {
			return err
		}
	}
	if c.changed, err = c.toStage(ctx, x.env, paths); err != nil {
		return err
	}
	if len(c.paths) == 0 {
		return nothingToCommit("the files are unchanged, ignored, or missing")
	}
	return x.add(ctx, c.paths)
}

// leaveOut marks the files that a sparse checkout leaves out of the worktree. Without
// the marks, the commit would delete them.
func (c *committing) leaveOut(ctx context.Context, x *privateIndex) error {
	away, err := c.marked(ctx, "-t", "S")
	if err != nil || len(away) == 0 {
		return err
	}
	slices.Sort(away)
	var stdin bytes.Buffer
	err = c.records(ctx, x.with(command{args: []string{"ls-files", "-z", "--cached"}}), func(path string) { // this index lacks files added since HEAD
		if _, ok := slices.BinarySearch(away, path); ok {
			stdin.WriteString(path + "\x00")
		}
	})
	if err != nil {
		return err
	}
	_, err = x.run(ctx, command{args: []string{"update-index", "-z", "--skip-worktree", "--stdin"}, stdin: stdin.Bytes()})
	return err
}

func nothingToCommit(why string) *tool.Error {
	return tool.Errorf(tool.Failed, "There is nothing to commit: %s", why).WithHint("git_status lists changed files; stage them with git_add, or name them in files")
}

// compare finds the changes of the commit.
func (c *committing) compare(ctx context.Context, x *privateIndex) error {
	base := c.head.Commit
	if base == "" {
		base = emptyTree(c.tree)
	}
	c.diff = porcelain.NewChanges(0)
	list := command{args: slices.Concat([]string{"diff-index", "--cached"}, listFlags(), []string{base, "--"}), env: x.env}
	if err := c.read(ctx, list, c.diff); err != nil {
		return err
	}
	if c.diff.Total == 0 && c.doing != "merge" {
		return nothingToCommit("nothing is staged")
	}
	var files []string
	for _, f := range c.diff.Files {
		files = append(files, f.From, f.Path)
	}
	if err := c.refuseForbidden(files); err != nil {
		return err
	}
	if !c.call.InPreview() {
		return nil
	}
	var err error
	c.patch, err = c.previewOf(ctx, "diff-index", append([]string{"--cached"}, c.patchFlags()...), []string{base}, nil, x.env)
	return err
}

// emptyTree returns the object id of the empty tree, in the format of another id.
func emptyTree(like string) string {
	if len(like) == 64 {
		return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
	}
	return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
}

func (c *committing) State(context.Context) (string, error) {
	parts := slices.Concat([]string{"git_commit", c.gitDir, c.head.Name, c.tree, c.message, c.doing}, c.authorship(), c.parents)
	return stateOf(parts...), nil
}

func (c *committing) Show(ctx context.Context) (string, []tool.Content, error) {
	subject, _, _ := strings.Cut(c.message, "\n")
	summary := fmt.Sprintf("Commits %s (+%d -%d) on %s: %s", display.Plural(c.diff.Total, "file"), c.diff.Added, c.diff.Deleted, c.head.head(), display.Line(subject))
	var about strings.Builder
	author := c.author
	if c.doing == "cherry-pick" {
		author = identity{c.picked.author, c.picked.email}
	}
	fmt.Fprintf(&about, "Author: %s <%s>\n\n", display.Line(author.name), display.Line(author.email))
	for line := range strings.Lines(c.message) {
		about.WriteString("    " + display.Visible(line))
	}
	about.WriteByte('\n')
	switch {
	case c.doing == "merge":
		about.WriteString("Finishes a merge; the diff is against the current branch.\n")
	case c.doing != "":
		fmt.Fprintf(&about, "Finishes a %s of %s: %s\n", c.doing, short(c.picked.id), display.Line(c.picked.subject()))
	}
	var paths []string
	for _, f := range c.diff.Files {
		paths = append(paths, f.Path)
	}
	hidden, err := c.hiddenNote(ctx, paths)
	if err != nil {
		return "", nil, err
	}
	about.WriteString(hidden)
	for _, note := range c.notes(c.repository) {
		about.WriteString(note + "\n")
	}
	return summary, append([]tool.Content{tool.Text(about.String())}, c.patch.content()...), nil
}

// hiddenNote names the files whose diff .gitattributes hides.
func (r *repository) hiddenNote(ctx context.Context, paths []string) (string, error) {
	hidden, err := r.attributed(ctx, "diff", paths, func(value string) bool { return value == "unset" })
	if err != nil || len(hidden) == 0 {
		return "", err
	}
	return "NOT ALL IS SHOWN: .gitattributes hides the diff of " + r.namesOf(hidden) + "\n", nil
}

func (c *committing) Apply(ctx context.Context) (tool.Result, error) {
	args := []string{"commit-tree", "--no-gpg-sign", c.tree}
	for _, parent := range c.parents {
		args = append(args, "-p", parent)
	}
	out, err := c.run(ctx, command{args: args, stdin: []byte(c.message), env: c.authorship(), writes: true})
	if err != nil {
		return tool.Result{}, err
	}
	id := strings.TrimSpace(string(out.stdout))
	subject, _, _ := strings.Cut(c.message, "\n")
	if err := c.moveHead(ctx, c.head, id, "commit: "+subject); err != nil {
		return tool.Result{}, err
	}
	var notes []string
	if c.only {
		if err := c.stage(ctx); err != nil {
			notes = append(notes, "[the commit succeeded, but the index could not be updated: "+tool.AsError(err).Message+"]")
		}
	}
	if c.doing != "" {
		c.conclude()
	}
	text := fmt.Sprintf("Committed %s on %s: %s\n%s, +%d -%d", short(id), c.head.head(), display.Line(subject), display.Plural(c.diff.Total, "file"), c.diff.Added, c.diff.Deleted)
	facts := map[string]any{"repo": c.shown, "commit": id, "branch": c.head.Name, "files": c.diff.Total, "added": c.diff.Added, "deleted": c.diff.Deleted}
	return done(facts, c.changedFiles(nil, "commit"), "%s", strings.Join(append(append([]string{text}, c.notes(c.repository)...), notes...), "\n")), nil
}

// moveHead moves the branch, or a detached HEAD, to a new commit. If it has moved since
// head was read, moveHead fails.
func (r *repository) moveHead(ctx context.Context, head *state, id, reason string) error {
	ref, old := "HEAD", strings.Repeat("0", len(id))
	if head.Name != "" {
		ref = "refs/heads/" + head.Name
	}
	if head.Commit != "" {
		old = head.Commit
	}
	args := []string{"update-ref", "-m", reason}
	if head.Name == "" {
		args = append(args, "--no-deref")
	}
	_, err := r.run(ctx, command{args: append(args, ref, id, old), env: r.anybody(), writes: true})
	return err
}

// stage updates the repository's index for the committed files.
func (c *committing) stage(ctx context.Context) error {
	var entries strings.Builder
	for _, f := range c.diff.Files {
		if f.Status == "R" {
			fmt.Fprintf(&entries, "0 %s\t%s\x00", strings.Repeat("0", len(f.ID)), f.From)
		}
		fmt.Fprintf(&entries, "%s %s\t%s\x00", f.Mode, f.ID, f.Path)
	}
	_, err := c.run(ctx, command{args: []string{"update-index", "-z", "--index-info"}, stdin: []byte(entries.String()), writes: true})
	return err
}

// conclude removes the files of an operation in progress.
func (r *repository) conclude() {
	for _, name := range []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "MERGE_MSG", "MERGE_MODE", "AUTO_MERGE", "SQUASH_MSG"} {
		_ = os.Remove(filepath.Join(r.gitDir, name)) // most do not exist
	}
}
