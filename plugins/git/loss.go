package main

import (
	"context"
	"crypto/sha1" //nolint:gosec // git's object ids
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// refuseLoss refuses to write files of a tree over untracked files. Git replaces ignored
// files without asking, and no preview would show their content. A file that already
// equals the tree's is not lost.
func (r *repository) refuseLoss(ctx context.Context, tree string, files []string) error {
	unknown, err := r.names(ctx, "diff-index", "--cached", "--diff-filter=D", tree)
	if err != nil {
		return err
	}
	written := map[string]bool{}
	for _, path := range files {
		written[path] = true
	}
	var inTheWay []string
	folders := map[string]bool{}
	for _, path := range unknown {
		if at := r.inTheWay(path, folders); written[path] && at != "" {
			inTheWay = append(inTheWay, at)
		}
	}
	for some := range slices.Chunk(inTheWay, maxNames) {
		lost, err := r.list(ctx, append([]string{"ls-files", "--others", "-z", "--"}, some...))
		if err != nil {
			return err
		}
		if len(lost) == 0 {
			continue
		}
		same, err := r.same(ctx, tree, some)
		if err != nil {
			return err
		}
		lost = slices.DeleteFunc(lost, func(path string) bool { return same[path] })
		if len(lost) > 0 {
			return tool.Errorf(tool.Conflict, "Untracked files would be lost: %s", r.namesOf(lost)).
				WithHint("commit, move or delete these files first; git_status does not list ignored files")
		}
	}
	return nil
}

// inTheWay returns the path itself if it exists in the worktree, or the parent of the
// path that is not a directory, or "" if neither exists. It caches directories in
// folders.
func (r *repository) inTheWay(path string, folders map[string]bool) string {
	for i := range len(path) {
		if path[i] != '/' || folders[path[:i]] {
			continue
		}
		info, err := os.Lstat(filepath.Join(r.worktree, path[:i]))
		if err != nil {
			return "" // nothing is in the way
		}
		if !info.IsDir() {
			return path[:i]
		}
		folders[path[:i]] = true
	}
	if _, err := os.Lstat(filepath.Join(r.worktree, path)); err != nil {
		return ""
	}
	return path
}

// same returns the paths whose files in the worktree equal those in a tree, byte for
// byte and with the same mode.
func (r *repository) same(ctx context.Context, tree string, paths []string) (map[string]bool, error) {
	entries, err := r.list(ctx, append([]string{"ls-tree", "-z", "-l", "--full-tree", tree, "--"}, paths...))
	if err != nil {
		return nil, err
	}
	same := map[string]bool{}
	for _, entry := range entries {
		head, path, _ := strings.Cut(entry, "\t")
		if f := strings.Fields(head); len(f) == 4 && f[1] == "blob" { // mode, kind, id, size
			same[path] = holds(filepath.Join(r.worktree, path), f[0], f[2], f[3])
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return same, nil
}

// holds reports whether a file has exactly the mode, id and size of a tree's entry. It
// does not use git, which would convert the content first.
func holds(path, mode, id, size string) bool {
	info, err := os.Lstat(path)
	if err != nil || strconv.FormatInt(info.Size(), 10) != size {
		return false
	}
	var content io.Reader
	switch executable := info.Mode()&0o100 != 0; {
	case info.Mode().Type() == fs.ModeSymlink && mode == "120000":
		target, err := os.Readlink(path)
		if err != nil {
			return false
		}
		content = strings.NewReader(target)
	case info.Mode().IsRegular() && (mode == "100644" && !executable || mode == "100755" && executable):
		file, err := openFile(path)
		if err != nil {
			return false
		}
		defer file.Close()
		content = io.LimitReader(file, info.Size()+1) // one byte more detects a growing file
	default:
		return false
	}
	sum := sha1.New() //nolint:gosec // git's object ids
	if len(id) == 2*sha256.Size {
		sum = sha256.New()
	}
	fmt.Fprintf(sum, "blob %s\x00", size)
	_, err = io.Copy(sum, content)
	return err == nil && hex.EncodeToString(sum.Sum(nil)) == id
}

// names lists the files that a comparing command finds.
func (r *repository) names(ctx context.Context, args ...string) ([]string, error) {
	return r.list(ctx, slices.Concat(args[:1], namesAlone(), args[1:], []string{"--"}))
}

// namesAlone returns the options for a list of names that [repository.list] reads.
func namesAlone() []string {
	return []string{"--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", ignoreSubmodules}
}

// list returns the names that a command writes with -z, at most maxHeld.
func (r *repository) list(ctx context.Context, args []string) ([]string, error) {
	return r.listOf(ctx, command{args: args})
}

func (r *repository) listOf(ctx context.Context, c command) ([]string, error) {
	var paths []string
	err := r.records(ctx, c, func(path string) {
		if len(paths) <= maxHeld {
			paths = append(paths, path)
		}
	})
	if err != nil {
		return nil, err
	}
	if len(paths) > maxHeld {
		return nil, tool.Errorf(tool.ResourceExhausted, "More than %d files would change", maxHeld)
	}
	return paths, nil
}
