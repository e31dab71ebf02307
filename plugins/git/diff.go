package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk/tool"
)

type diffArgs struct {
	Path   string   `json:"path,omitempty" jsonschema:"the repository, or a directory or file in it to compare alone, relative to the workspace" role:"path" alias:"repo" default:"."`
	Staged bool     `json:"staged,omitempty" jsonschema:"what is staged for the next commit, instead of what is not" default:"false"`
	Base   string   `json:"base,omitempty" jsonschema:"the commit, branch or tag to compare with, instead of the index"`
	Head   string   `json:"head,omitempty" jsonschema:"the commit, branch or tag that is compared with base, instead of the files"`
	Files  []string `json:"files,omitempty" jsonschema:"files and directories to compare alone, relative to the workspace" role:"path"`
	Stat   bool     `json:"stat,omitempty" jsonschema:"only the list of files, with how many lines were added and deleted" default:"false"`
	Cursor string   `json:"cursor,omitempty" jsonschema:"the next_cursor of an earlier result, to get what follows it; the other arguments must be the same"`
}

// Diff is what differs between two states.
type Diff struct {
	Repo       string     `json:"repo" jsonschema:"the repository's directory, relative to the workspace"`
	Files      []FileDiff `json:"files" jsonschema:"the files that differ; with a cursor, of a diff that is no list, none"`
	Total      int        `json:"total" jsonschema:"how many files differ"`
	Added      int        `json:"added" jsonschema:"lines, of all files"`
	Deleted    int        `json:"deleted" jsonschema:"lines, of all files"`
	Patch      string     `json:"patch,omitempty" jsonschema:"a unified diff, or a part of it"`
	LeftOut    int        `json:"sensitive_left_out,omitempty" jsonschema:"how many files that usually hold secrets are left out; one that files names is not"`
	Forbidden  int        `json:"forbidden_left_out,omitempty" jsonschema:"how many files are left out that the administrator has forbidden to all calls"`
	NextCursor string     `json:"next_cursor,omitempty"`
}

// FileDiff is a file that differs.
type FileDiff struct {
	Path    string `json:"path" jsonschema:"relative to the workspace"`
	From    string `json:"from,omitempty" jsonschema:"where it was before it was renamed or copied"`
	Status  string `json:"status" jsonschema:"A added, D deleted, M modified, R renamed, C copied, T type changed, U in conflict"`
	Added   int    `json:"added"`
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitempty"`
}

// Text implements [sdk.Texter].
func (d Diff) Text() string {
	var b strings.Builder
	if d.Patch == "" {
		writeFiles(&b, d.Files, d.Total, d.Added, d.Deleted)
	}
	b.WriteString(d.Patch)
	b.WriteString(leftOutNote(d.LeftOut, d.Forbidden))
	writeNext(&b, d.NextCursor)
	return b.String()
}

func writeFiles(b *strings.Builder, files []FileDiff, total, added, deleted int) {
	if total == 0 && len(files) == 0 {
		b.WriteString("No differences\n")
		return
	}
	for _, f := range files {
		counts := fmt.Sprintf("+%d -%d", f.Added, f.Deleted)
		if f.Binary {
			counts = "binary"
		}
		fmt.Fprintf(b, "%s %s %s", f.Status, counts, tool.VisibleName(f.Path))
		if f.From != "" {
			fmt.Fprintf(b, " (from %s)", tool.VisibleName(f.From))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "%s, +%d -%d\n", plural(total, "file"), added, deleted)
}

func writeNext(b *strings.Builder, cursor string) {
	if cursor == "" {
		return
	}
	if text := b.String(); text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "[there is more; continue with cursor=%q]\n", cursor)
}

// plural returns "1 file" or "2 files".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// patchFlags make a patch of what differs, whatever the configuration says.
func (r *repository) patchFlags() []string {
	return append([]string{"--patch", "--unified=3", "--inter-hunk-context=0"}, append(r.prefixes(), diffFlags()...)...)
}

// undoFlags are patchFlags for what takes a state back.
func (r *repository) undoFlags() []string {
	p := r.prefixes()
	reversed := []string{"-R", strings.Replace(p[1], "--dst-prefix=b", "--src-prefix=b", 1), strings.Replace(p[0], "--src-prefix=a", "--dst-prefix=a", 1)}
	return append(r.patchFlags(), reversed...)
}

// listFlags make a list for [porcelain.Changes] instead.
func listFlags() []string {
	return append([]string{"--raw", "--numstat", "-z", "--no-abbrev"}, diffFlags()...)
}

// nameFlags make a list of the names alone.
func nameFlags() []string { return []string{"--raw", "-z", "--no-abbrev"} }

func diffFlags() []string {
	return []string{
		"--no-ext-diff", "--no-textconv", "--submodule=short", ignoreSubmodules, "--no-color", "--no-color-moved", "--find-renames", "--no-relative",
		"--diff-algorithm=default",
	}
}

// diff compares two states of a repository.
func diff(ctx context.Context, s *access, in diffArgs) (Diff, error) {
	r, err := s.repository(ctx, in.Path)
	if err != nil {
		return Diff{}, err
	}
	states, err := r.states(ctx, in)
	if err != nil {
		return Diff{}, err
	}
	paths, err := r.chosen(in.Files)
	if err != nil {
		return Diff{}, err
	}
	d := Diff{Repo: r.shown}
	if in.Stat {
		p, err := s.page(pageArgs{Limit: maxLimit, Cursor: in.Cursor})
		if err != nil {
			return Diff{}, err
		}
		err = r.listDiff(ctx, &d, r.selectAllowed(states, paths), p)
		d.NextCursor = p.next()
		if err == nil && d.Total == 0 && d.Forbidden == 0 {
			err = r.refuseUnknown(ctx, paths, in)
		}
		return d, err
	}
	what, err := r.withoutSensitive(states, paths)
	if err != nil {
		return Diff{}, err
	}
	err = r.readDiff(ctx, &d, "diff", what, in.Cursor, s.budget-overhead)
	if err == nil && d.Total == 0 && d.LeftOut+d.Forbidden == 0 && in.Cursor == "" {
		err = r.refuseUnknown(ctx, paths, in)
	}
	return d, err
}

// refuseUnknown is refuseMissing for paths of which nothing differs. If the files are
// not compared, what one of the states has is known, and the other has the same.
func (r *repository) refuseUnknown(ctx context.Context, paths []string, in diffArgs) error {
	missing := r.refuseMissing(paths)
	if missing == nil || in.Head == "" && !in.Staged {
		return missing
	}
	list := []string{"ls-files", "-z", "--"}
	if in.Head != "" {
		id, err := r.commit(ctx, in.Head)
		if err != nil {
			return err
		}
		list = []string{"ls-tree", "-z", "--name-only", "--full-tree", id, "--"}
	}
	known, err := r.list(ctx, append(list, paths...))
	if err != nil {
		return err
	}
	return r.refuseMissing(slices.DeleteFunc(paths, func(path string) bool {
		return slices.ContainsFunc(known, func(file string) bool { return within(file, path) })
	}))
}

// maxRepeats is how often a diff is repeated because sensitive files appear.
const maxRepeats = 8

// readDiff adds a part of the patch, and before the first one the files that differ.
// It takes the names of the files from the run that makes the patch: if one that may
// not be shown is among them, it repeats the run without that file.
func (r *repository) readDiff(ctx context.Context, d *Diff, subcommand string, what *selection, cursor string, room int) error {
	for range maxRepeats {
		again, err := r.tryDiff(ctx, d, subcommand, what, cursor, room)
		if r.countLeftOut(d, what); !again || err != nil {
			return err
		}
	}
	return changedMeanwhile()
}

func changedMeanwhile() *tool.Error {
	return tool.Errorf(tool.Conflict, "Files change while they are compared").WithHint("ask again, or name the files to compare")
}

// countLeftOut notes how many files are left out.
func (r *repository) countLeftOut(d *Diff, what *selection) {
	sensitive, forbidden := r.named(what.leftOut)
	d.LeftOut, d.Forbidden = len(sensitive), forbidden
}

// errSensitive ends a run that lists a file that may not be shown, before its patch.
var errSensitive = errors.New("a sensitive or forbidden file differs")

// tryDiff is readDiff once. It reports whether to repeat it without more files.
func (r *repository) tryDiff(ctx context.Context, d *Diff, subcommand string, what *selection, cursor string, room int) (again bool, err error) {
	p := &page{limit: maxLimit, room: room / 4}
	changes := porcelain.NewChanges(maxLimit)
	before := len(what.leftOut)
	changes.Each = what.see
	var w *window
	var patch io.Writer
	changes.Patch = func(part []byte) (err error) {
		if len(what.leftOut) > before {
			return errSensitive
		}
		if w == nil { // the files are known
			if w, err = r.diffWindow(d, changes, p, cursor, room); err != nil {
				return err
			}
			patch = r.headings(w)
		}
		_, err = patch.Write(part)
		return err
	}
	list := listFlags()
	if cursor != "" {
		list = nameFlags() // the files and counts were in the first part
	}
	_, err = r.run(ctx, what.command(subcommand, slices.Concat(list, r.patchFlags()), changes, tool.TiB))
	switch {
	case len(what.leftOut) > before:
		return true, what.tooMany()
	case err != nil:
		return false, err
	}
	err = changes.Close()
	if errors.Is(err, porcelain.ErrCombined) { // nothing of a patch was taken
		return r.readConflicts(ctx, d, what, cursor, room)
	}
	if err != nil {
		return false, unreadable(err)
	}
	if w == nil {
		if w, err = r.diffWindow(d, changes, p, cursor, room); err != nil {
			return false, err
		}
	}
	d.Patch, d.NextCursor, err = w.take()
	return false, err
}

// diffWindow adds the files to the first part, and makes the window of its patch.
func (r *repository) diffWindow(d *Diff, changes *porcelain.Changes, p *page, cursor string, room int) (*window, error) {
	if cursor == "" {
		r.addFiles(d, changes, p)
		room -= room/4 - p.room
	}
	return r.window(cursor, room)
}

// readConflicts is tryDiff for files and an index that has conflicts: git then writes
// a list and a patch of all that differs only one by one. The patch is that of the
// listed files alone.
func (r *repository) readConflicts(ctx context.Context, d *Diff, what *selection, cursor string, room int) (again bool, err error) {
	before := len(what.leftOut)
	listed := *what
	listed.paths = nil
	changes := porcelain.NewChanges(maxLimit)
	changes.Each = func(c porcelain.Change) {
		what.see(c)
		if len(listed.paths) <= maxNames && !slices.Contains(listed.paths, c.Path) {
			listed.paths = append(listed.paths, c.Path)
		}
	}
	if _, err := r.run(ctx, what.command("diff", slices.Concat(listFlags(), []string{"--no-renames"}), changes, maxListed)); err != nil {
		return false, err
	}
	switch err := changes.Close(); {
	case err != nil:
		return false, unreadable(err)
	case len(what.leftOut) > before:
		return true, what.tooMany()
	case len(listed.paths) > maxNames:
		return false, tool.Errorf(tool.ResourceExhausted, "More than %d files differ during a conflict", maxNames).WithHint("name files or directories")
	}
	w, err := r.diffWindow(d, changes, &page{limit: maxLimit, room: room / 4}, cursor, room)
	if err != nil || len(listed.paths) == 0 {
		return false, err
	}
	if _, err := r.run(ctx, listed.command("diff", slices.Concat(r.patchFlags(), []string{"--no-renames"}), r.headings(w), tool.TiB)); err != nil {
		return false, err
	}
	d.Patch, d.NextCursor, err = w.take()
	return false, err
}

// states are the two states that git diff compares.
func (r *repository) states(ctx context.Context, in diffArgs) ([]string, error) {
	var revs []string
	switch {
	case in.Head != "" && in.Base == "":
		return nil, tool.Errorf(tool.InvalidArgument, "head is given without base").WithHint("base is what head is compared with")
	case in.Head != "" && in.Staged:
		return nil, tool.Errorf(tool.InvalidArgument, "head and staged are both given").WithHint("base and head compare two commits; staged compares the index")
	case in.Head != "":
		revs = []string{in.Base, in.Head}
	case in.Base != "":
		revs = []string{in.Base}
	}
	var states []string
	if in.Staged {
		states = append(states, "--cached")
	}
	if len(revs) == 0 {
		return states, nil
	}
	ids, err := r.commits(ctx, revs...)
	return append(states, ids...), err
}

// listDiff adds the files that differ. If some are left out, it lists the others anew.
func (r *repository) listDiff(ctx context.Context, d *Diff, what *selection, p *page) error {
	for range maxRepeats {
		before := len(what.leftOut)
		changes := porcelain.NewChanges(p.start + maxLimit)
		changes.Each = what.see
		_, err := r.run(ctx, what.command("diff", listFlags(), changes, maxListed))
		if len(what.leftOut) > before { // which may be why git has failed: it cannot read what the sandbox hides
			if err := what.tooMany(); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := changes.Close(); err != nil {
			return unreadable(err)
		}
		r.countLeftOut(d, what)
		r.addFiles(d, changes, p)
		return nil
	}
	return changedMeanwhile()
}

func (r *repository) addFiles(d *Diff, changes *porcelain.Changes, p *page) {
	d.Total, d.Added, d.Deleted = changes.Total, changes.Added, changes.Deleted
	for _, c := range changes.Files {
		f := r.fileDiff(c)
		if p.take(100 + jsonSize(f.Path) + jsonSize(f.From)) {
			d.Files = append(d.Files, f)
		}
	}
}

func (r *repository) fileDiff(c porcelain.Change) FileDiff {
	return FileDiff{Path: r.show(c.Path), From: r.show(c.From), Status: c.Status, Added: c.Added, Deleted: c.Deleted, Binary: c.Binary}
}
