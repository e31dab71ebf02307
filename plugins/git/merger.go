package main

import (
	"compress/zlib"
	"context"
	"crypto/sha1" //nolint:gosec // git's object ids
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk/tool"
)

// merger merges trees outside of the repository, in a temporary git directory that
// shares only the objects. The repository's configuration does not apply there, so
// merge drivers do not exist and git merges their files as text. The attributes that
// need no configuration apply, such as merge=union. In a preview, new objects stay in
// the temporary directory.
type merger struct {
	*transfer
	extra string // an object directory for commits that exist only to be merged
}

// merged is the result of a merge.
type merged struct {
	tree string
	// clean is false if there are conflicts. The tree then contains conflict markers.
	clean  bool
	stages []staged
}

// staged is one version of a file in conflict.
type staged struct{ mode, id, stage, path string }

// merger returns a merger, which the caller must close.
func (r *repository) merger() (*merger, error) {
	t, err := r.transfer(nil)
	if err != nil {
		return nil, err
	}
	m := &merger{transfer: t, extra: filepath.Join(t.gitDir, "extra")}
	t.worktree = r.worktree // for .gitattributes
	if err := m.prepare(r); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (m *merger) prepare(of *repository) error {
	dirs := []string{m.extra, filepath.Join(m.gitDir, "info")}
	if m.call.InPreview() {
		m.objects = filepath.Join(m.gitDir, "new")
		dirs = append(dirs, m.objects, filepath.Join(m.objects, "info"))
	}
	for _, dir := range dirs {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return noRoom(err)
		}
	}
	if m.call.InPreview() {
		var list strings.Builder
		for _, dir := range m.alternates {
			list.WriteString(`"` + quoteForGit(dir) + "\"\n")
		}
		if err := os.WriteFile(filepath.Join(m.objects, "info", "alternates"), []byte(list.String()), 0o600); err != nil {
			return noRoom(err)
		}
	}
	return copyFile(filepath.Join(m.gitDir, "info", "attributes"), filepath.Join(of.commonDir, "info", "attributes"))
}

// view returns the repository with the objects of the merges.
func (m *merger) view(r *repository) *repository {
	if !m.call.InPreview() {
		return r
	}
	v := *r
	v.objects, v.alternates = m.objects, m.alternates
	return &v
}

// merge merges two commits. label is the name of theirs in conflict markers; it must be
// a valid branch name.
func (m *merger) merge(ctx context.Context, ours, theirs, label string) (merged, error) {
	var result merged
	err := os.WriteFile(filepath.Join(m.gitDir, "HEAD"), []byte(ours+"\n"), 0o600)
	if err == nil {
		err = os.WriteFile(filepath.Join(m.gitDir, "packed-refs"), []byte(theirs+" refs/heads/"+label+"\n"), 0o600)
	}
	if err != nil {
		return result, noRoom(err)
	}
	var found []string
	records := porcelain.NewRecords(func(record []byte) error {
		found = append(found, string(record))
		return nil
	})
	var config []string
	if m.call.InPreview() {
		config = []string{"core.fsync", "none"} // the objects are temporary
	}
	out, err := m.run(ctx, command{
		config: config,
		args:   []string{"merge-tree", "--write-tree", "-z", "--no-messages", "HEAD", label},
		env:    []string{"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + quotedDir(m.extra)}, writes: !m.call.InPreview(),
		output: records, maxOutput: maxListed, exits: []int{1, 129},
	})
	switch {
	case err != nil:
		return result, err
	case out.exit == 129: // the usage
		return result, tool.Errorf(tool.Unavailable, "The installed git cannot compute a merge").WithHint("the user must install git 2.38 or newer")
	}
	if err := records.Close(); err != nil || len(found) == 0 {
		return result, unreadable(err)
	}
	result.tree, result.clean = found[0], out.exit == 0
	for _, record := range found[1:] {
		var s staged
		head, path, found := strings.Cut(record, "\t")
		if _, err := fmt.Sscan(head, &s.mode, &s.id, &s.stage); err != nil || !found {
			return result, unreadable(err)
		}
		s.path = path
		result.stages = append(result.stages, s)
	}
	return result, nil
}

// apply merges the difference between two trees into a third one.
func (m *merger) apply(ctx context.Context, tree, base, theirs, label string) (merged, error) {
	var ids []string
	for _, tree := range []string{base, tree, theirs} {
		parent := ""
		if len(ids) > 0 {
			parent = ids[0]
		}
		id, err := m.makeUp(tree, parent)
		if err != nil {
			return merged{}, err
		}
		ids = append(ids, id)
	}
	return m.merge(ctx, ids[1], ids[2], label)
}

// makeUp writes a commit that exists only to be merged. It does not use git, which would
// need a process for each.
func (m *merger) makeUp(tree, parent string) (string, error) {
	text := "tree " + tree + "\n"
	if parent != "" {
		text += "parent " + parent + "\n"
	}
	text += "author x <x> 0 +0000\ncommitter x <x> 0 +0000\n\nx\n"
	object := fmt.Appendf(nil, "commit %d\x00%s", len(text), text)
	var id string
	if len(tree) == 2*sha256.Size {
		sum := sha256.Sum256(object)
		id = hex.EncodeToString(sum[:])
	} else {
		sum := sha1.Sum(object) //nolint:gosec // git's object ids
		id = hex.EncodeToString(sum[:])
	}
	dir := filepath.Join(m.extra, id[:2])
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = writeLoose(filepath.Join(dir, id[2:]), object)
	}
	if err != nil {
		return "", noRoom(err)
	}
	return id, nil
}

// writeLoose writes an object as git stores it.
func writeLoose(path string, object []byte) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w := zlib.NewWriter(file)
	_, err = w.Write(object)
	if err == nil {
		err = w.Close()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// conflicts returns a line for each file in conflict, with the letters of git status,
// and the paths.
func (m *merged) conflicts() (letters map[string]string, paths []string) {
	found := map[string]int{}
	for _, s := range m.stages {
		if found[s.path] == 0 {
			paths = append(paths, s.path)
		}
		found[s.path] |= map[string]int{"1": inBase, "2": inOurs, "3": inTheirs}[s.stage]
	}
	letters = map[string]string{}
	for path, stages := range found {
		letters[path] = [...]string{"", "DD", "AU", "UD", "UA", "DU", "AA", "UU"}[stages]
	}
	slices.Sort(paths)
	return letters, paths
}

// index returns the input of git update-index that marks the files as in conflict.
func (m *merged) index() []byte {
	var b strings.Builder
	last := ""
	for i, s := range m.stages {
		if i == 0 || s.path != last {
			fmt.Fprintf(&b, "0 %s\t%s\x00", strings.Repeat("0", len(s.id)), s.path)
		}
		last = s.path
		fmt.Fprintf(&b, "%s %s %s\t%s\x00", s.mode, s.id, s.stage, s.path)
	}
	return []byte(b.String())
}
