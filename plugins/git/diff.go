package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type diffArgs struct {
	Path   string   `json:"path,omitempty" jsonschema:"repository" role:"path" alias:"repo" default:"."`
	Staged bool     `json:"staged,omitempty" jsonschema:"show staged changes" default:"false"`
	Base   string   `json:"base,omitempty" jsonschema:"revision to compare from"`
	Head   string   `json:"head,omitempty" jsonschema:"revision to compare to"`
	Files  []string `json:"files,omitempty" jsonschema:"only these paths" role:"path" alias:"paths"`
	Stat   bool     `json:"stat,omitempty" jsonschema:"only files and counts of lines" default:"false"`
	sdk.Paged
}

// Diff is the result of git_diff.
type Diff struct {
	Repo       string     `json:"repo" jsonschema:"the repository's directory, relative to the workspace"`
	Files      []FileDiff `json:"files" jsonschema:"the files that differ; empty in the later parts of a diff"`
	Total      int        `json:"total" jsonschema:"number of files that differ"`
	Added      int        `json:"added" jsonschema:"number of added lines in all files"`
	Deleted    int        `json:"deleted" jsonschema:"number of deleted lines in all files"`
	Patch      string     `json:"patch,omitempty" jsonschema:"a unified diff, or a part of it"`
	LeftOut    int        `json:"sensitive_left_out,omitempty" jsonschema:"number of files that are left out because they usually contain secrets; name a file in files to see it"`
	Forbidden  int        `json:"forbidden_left_out,omitempty" jsonschema:"number of files that are left out because the administrator has forbidden them for all calls"`
	NextCursor sdk.Cursor `json:"next_cursor,omitempty"`
}

// FileDiff is a file that differs.
type FileDiff struct {
	Path    display.Name `json:"path" jsonschema:"relative to the workspace"`
	From    display.Name `json:"from,omitempty" jsonschema:"the old path of a renamed file, or the source of a copy"`
	Status  string       `json:"status" jsonschema:"A added, D deleted, M modified, R renamed, C copied, T type changed, U in conflict"`
	Added   int          `json:"added"`
	Deleted int          `json:"deleted"`
	Binary  bool         `json:"binary,omitempty"`
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
		fmt.Fprintf(b, "%s %s %s", f.Status, counts, f.Path)
		if f.From != "" {
			fmt.Fprintf(b, " (from %s)", f.From)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "%s, +%d -%d\n", display.Plural(total, "file"), added, deleted)
}

// writeNext adds the note of a cursor to a text, on a separate line.
func writeNext(b *strings.Builder, cursor sdk.Cursor) {
	if cursor == "" {
		return
	}
	if text := b.String(); text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(cursor.Note("") + "\n")
}

// patchFlags returns the options for a patch, which override the configuration.
func (r *repository) patchFlags() []string {
	return append([]string{"--patch", "--unified=3", "--inter-hunk-context=0"}, append(r.prefixes(), diffFlags()...)...)
}

// undoFlags is patchFlags for the reverse patch.
func (r *repository) undoFlags() []string {
	p := r.prefixes()
	reversed := []string{"-R", strings.Replace(p[1], "--dst-prefix=b", "--src-prefix=b", 1), strings.Replace(p[0], "--src-prefix=a", "--dst-prefix=a", 1)}
	return append(r.patchFlags(), reversed...)
}

// listFlags returns the options for a list that [porcelain.Changes] reads.
func listFlags() []string {
	return append([]string{"--raw", "--numstat", "-z", "--no-abbrev"}, diffFlags()...)
}

// nameFlags returns the options for a list without counts of lines.
func nameFlags() []string { return []string{"--raw", "-z", "--no-abbrev"} }

func diffFlags() []string {
	return []string{
		"--no-ext-diff", "--no-textconv", "--submodule=short", ignoreSubmodules, "--no-color", "--no-color-moved", "--find-renames", "--no-relative",
		"--diff-algorithm=default",
	}
}

// diff runs git_diff.
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
		p := s.page(maxLimit, in.Cursor)
		err := r.listDiff(ctx, &d, r.selectAllowed(states, paths), p)
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

// refuseUnknown is refuseMissing for paths without differences. If the diff does not
// compare the files in the worktree, a path may also exist in one of the two states; the
// other state has the same.
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

// maxRepeats is how often a diff is repeated because new sensitive files appear.
const maxRepeats = 8

// readDiff adds a part of the patch to d, and with the first part the files that differ.
// It takes the file names from the run that makes the patch. If a file must not be
// shown, it repeats the run without that file.
func (r *repository) readDiff(ctx context.Context, d *Diff, subcommand string, what *selection, cursor sdk.Cursor, room int) error {
	for range maxRepeats {
		again, err := r.tryDiff(ctx, d, subcommand, what, cursor, room)
		if r.countLeftOut(d, what); !again || err != nil {
			return err
		}
	}
	return changedMeanwhile()
}

func changedMeanwhile() *tool.Error {
	return tool.Errorf(tool.Conflict, "Files changed during the comparison").WithHint("try again, or name the files to compare")
}

// countLeftOut sets the numbers of files that are left out.
func (r *repository) countLeftOut(d *Diff, what *selection) {
	sensitive, forbidden := r.named(what.leftOut)
	d.LeftOut, d.Forbidden = len(sensitive), forbidden
}

// errSensitive ends a run before its patch if it lists a file that must not be shown.
var errSensitive = errors.New("a sensitive or forbidden file differs")

// tryDiff is one run of readDiff. It reports whether to repeat the run with more files
// left out.
func (r *repository) tryDiff(ctx context.Context, d *Diff, subcommand string, what *selection, cursor sdk.Cursor, room int) (again bool, err error) {
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
			if len(what.states) == 0 && hasConflicts(changes) {
				return porcelain.ErrCombined
			}
			if w, err = r.diffWindow(d, changes, p, cursor, room); err != nil {
				return err
			}
			sides, err := r.sidesOf(ctx, changes)
			if err != nil {
				return err
			}
			patch = r.headings(w, sides)
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
	case err == nil:
		if err = changes.Close(); err != nil && !errors.Is(err, porcelain.ErrCombined) {
			err = unreadable(err)
		}
	}
	switch {
	case errors.Is(err, porcelain.ErrCombined): // no part of a patch was read
		return r.readConflicts(ctx, d, what, cursor, room)
	case err != nil:
		return false, err
	}
	if w == nil {
		if w, err = r.diffWindow(d, changes, p, cursor, room); err != nil {
			return false, err
		}
	}
	d.Patch, d.NextCursor, err = w.take()
	return false, err
}

// diffWindow returns the window of the patch, and adds the files to the first part.
func (r *repository) diffWindow(d *Diff, changes *porcelain.Changes, p *page, cursor sdk.Cursor, room int) (*window, error) {
	if cursor == "" {
		r.addFiles(d, changes, p)
		room -= room/4 - p.room
	}
	return r.window(cursor, room)
}

// states returns the arguments of git diff for the two states.
func (r *repository) states(ctx context.Context, in diffArgs) ([]string, error) {
	var revs []string
	switch {
	case in.Head != "" && in.Base == "":
		return nil, tool.Errorf(tool.InvalidArgument, "head is set without base").WithHint("set base to the commit to compare head with")
	case in.Head != "" && in.Staged:
		return nil, tool.Errorf(tool.InvalidArgument, "head and staged are both set").WithHint("use base and head to compare two commits, or staged to compare the index")
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

// listDiff adds the files that differ to d. If it finds files to leave out, it repeats
// the run without them.
func (r *repository) listDiff(ctx context.Context, d *Diff, what *selection, p *page) error {
	for range maxRepeats {
		before := len(what.leftOut)
		changes := porcelain.NewChanges(p.start + maxLimit)
		changes.Each = what.see
		_, err := r.run(ctx, what.command("diff", listFlags(), changes, maxListed))
		if len(what.leftOut) > before { // git may have failed because it cannot read a hidden file
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
		if p.take(100 + display.JSONSize(f.Path) + display.JSONSize(f.From)) {
			d.Files = append(d.Files, f)
		}
	}
}

func (r *repository) fileDiff(c porcelain.Change) FileDiff {
	return FileDiff{Path: r.show(c.Path), From: r.show(c.From), Status: c.Status, Added: c.Added, Deleted: c.Deleted, Binary: c.Binary}
}
