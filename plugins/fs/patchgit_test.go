//go:build !race

package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// runGit runs git in dir, without any user's configuration.
func runGit(t *testing.T, dir, input string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir)}
	cmd.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("git %s: %w: %s", args[0], err, errs.String())
	}
	return out.String(), nil
}

// randomTree is files of random lines; a name that ends in * may be executed.
type randomTree map[string]string

var randomNames = []string{"a", "b.txt", "dir/c", "dir/deep/d", "with space", "ümlaut", "quo\"te", "tab\there"}

// randomLines returns lines of so many kinds, which may end in any way.
func randomLines(r *rand.Rand, kinds int) []string {
	lines := make([]string, r.IntN(30))
	for i := range lines {
		lines[i] = fmt.Sprintf("line %d\n", r.IntN(kinds))
	}
	if r.IntN(4) == 0 {
		for i := range lines {
			lines[i] = strings.TrimSuffix(lines[i], "\n") + "\r\n"
		}
	}
	if n := len(lines); n > 0 && r.IntN(4) == 0 {
		lines[n-1] = strings.TrimRight(lines[n-1], "\r\n")
	}
	return lines
}

// changeLines makes some changes.
func changeLines(r *rand.Rand, lines []string, kinds int) []string {
	lines = slices.Clone(lines)
	for range 1 + r.IntN(4) {
		at := r.IntN(len(lines) + 1)
		switch r.IntN(3) {
		case 0:
			lines = slices.Insert(lines, at, fmt.Sprintf("line %d\n", r.IntN(kinds)))
		case 1:
			if at < len(lines) {
				lines = slices.Delete(lines, at, at+1)
			}
		default:
			if at < len(lines) {
				lines[at] = fmt.Sprintf("new %d\n", r.IntN(kinds))
			}
		}
	}
	for i := range lines[:max(len(lines)-1, 0)] {
		if !strings.HasSuffix(lines[i], "\n") {
			lines[i] += "\n"
		}
	}
	return lines
}

// randomTrees returns a tree and a changed version of it.
func randomTrees(r *rand.Rand, kinds int) (before, after randomTree) {
	before, after = randomTree{}, randomTree{}
	free := slices.Clone(randomNames)
	r.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	for range 1 + r.IntN(4) {
		name := free[0]
		free = free[1:]
		lines := randomLines(r, kinds)
		before[name] = strings.Join(lines, "")
		switch r.IntN(6) {
		case 0: // deleted
		case 1: // moved, and perhaps changed
			if len(free) > 4 {
				after[free[len(free)-1]] = strings.Join(changeLines(r, lines, kinds), "")
				free = free[:len(free)-1]
			}
		case 2: // becomes executable, or stops being so
			before[name+"*"] = before[name]
			delete(before, name)
			after[name] = before[name+"*"]
		default:
			after[name] = strings.Join(changeLines(r, lines, kinds), "")
		}
	}
	if r.IntN(2) == 0 {
		after[free[0]] = strings.Join(randomLines(r, kinds), "")
	}
	return before, after
}

// write makes the tree the only one in dir.
func (files randomTree) write(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != ".git" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	for name, content := range files {
		mode := os.FileMode(0o644)
		path, executable := strings.CutSuffix(filepath.Join(dir, name), "*")
		if executable {
			mode = 0o755
		}
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), mode), os.Chmod(path, mode))
	}
	return err
}

// readTree returns the files in dir, without directories.
func readTree(t *testing.T, dir string) randomTree {
	t.Helper()
	files := randomTree(contents(t, dir))
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasSuffix(name, "/") })
	for name, content := range maps.Clone(files) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode()&0o100 != 0 {
			delete(files, name)
			files[name+"*"] = content
		}
	}
	return files
}

// applyIn applies a patch to the files in dir.
func applyIn(t *testing.T, f *files, dir, text string) error {
	t.Helper()
	w, err := openWorkspace([]string{dir}, roots.Options{Shared: &f.shared}, tool.MiB, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	w.userDir = t.TempDir()
	c, err := planPatch(t.Context(), w, applyPatchArgs{Patch: text})
	if err != nil {
		return err
	}
	_, err = c.Apply(t.Context())
	return err
}

// The tool applies the patches that git makes of random trees, with the same result as git: to
// the original trees, and to trees that have changed since. In the latter, a hunk may be refused
// if its lines occur several times.
func TestApplyPatchAsGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no git")
		}
		t.Skip("there is no git")
	}
	repository, theirs, ours := t.TempDir(), t.TempDir(), t.TempDir()
	git := func(dir, input string, args ...string) string {
		t.Helper()
		out, err := runGit(t, dir, input, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	git(repository, "", "init", "-q")
	treeOf := func(files randomTree) string {
		if err := files.write(repository); err != nil {
			t.Fatal(err)
		}
		git(repository, "", "add", "-A", "-f")
		return strings.TrimSpace(git(repository, "", "write-tree"))
	}
	f := &files{}
	day := soak.Seed(t)
	applied, disturbed, refused, rounds := 0, 0, 0, 0
	for n := range 200 {
		if !soak.Today(day, n, 5) {
			continue
		}
		rounds++
		r := rand.New(rand.NewPCG(uint64(n), 1))
		kinds := []int{3, 1000}[n%2]
		before, after := randomTrees(r, kinds)
		diff := git(repository, "", "diff", []string{"-M", "-M20%", "--no-renames"}[n%3], "-U"+fmt.Sprint(1+n%4), treeOf(before), treeOf(after))
		if diff == "" {
			continue
		}
		old := maps.Clone(before)
		if n%2 == 1 { // something has changed since
			for name, content := range old {
				if content != "" && !strings.Contains(content, "\r") {
					old[name] = strings.Repeat("since\n", r.IntN(3)) + content
				}
			}
		}
		if err := errors.Join(old.write(theirs), old.write(ours)); err != nil {
			t.Fatal(err)
		}
		_, gitErr := runGit(t, theirs, diff, "apply", "--whitespace=nowarn", "-")
		err := applyIn(t, f, ours, diff)
		if gitErr != nil {
			continue // what git refuses may be applied: it has stricter rules about the ends of a file
		}
		if err != nil && n%2 == 1 && strings.Contains(err.Error(), "is ambiguous") {
			refused++
			continue
		}
		if err != nil {
			t.Errorf("round %d: git applies the patch, apply_patch says %v\n%s", n, err, diff)
			continue
		}
		if diffs := cmp.Diff(readTree(t, theirs), readTree(t, ours)); diffs != "" {
			t.Errorf("round %d: (-git +apply_patch):\n%s\nof\n%s", n, diffs, diff)
		}
		if applied++; !maps.Equal(old, before) {
			disturbed++
		}
	}
	t.Logf("%d patches were applied by both, %d of them to changed files; %d were refused as ambiguous", applied, disturbed, refused)
	if applied < rounds/2 || disturbed < rounds/20 {
		t.Errorf("only %d patches were applied, %d of them to changed files, so the test shows little", applied, disturbed)
	}
}
