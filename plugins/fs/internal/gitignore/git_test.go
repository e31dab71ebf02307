package gitignore_test

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/fs/internal/gitignore"
)

// rounds is how many sets of patterns are compared with git.
const rounds = 400

// Whatever the patterns are, git ignores the same files.
func TestGitAgrees(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("git is missing: %v", err)
		}
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	git(t, dir, nil, "init", "-q")
	paths := makeTree(t, dir)
	differ := 0
	for seed := range uint64(rounds) {
		w := writer{rand.New(rand.NewPCG(seed, 1))}
		files := map[string]string{
			".git/info/exclude": w.file(2), ".gitignore": w.file(6), "a/.gitignore": w.file(3), "a/b/.gitignore": w.file(2), "foo/.gitignore": w.file(2),
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want := strings.Split(git(t, dir, []byte(strings.Join(paths, "\x00")), "check-ignore", "--no-index", "-z", "--stdin"), "\x00")
		tree := tree{t, files}
		for _, path := range paths {
			if got, want := tree.ignored(dir, path), slices.Contains(want, path); got != want {
				differ++
				t.Errorf("seed %d: %q is ignored: %v, git says %v, by\n%q", seed, path, got, want, files)
			}
		}
		if differ > 5 {
			t.FailNow()
		}
	}
	t.Logf("%d verdicts", rounds*len(paths))
}

// git runs git in dir and returns its output.
func git(t *testing.T, dir string, input []byte, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	cmd.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && stderr.Len() > 0 { // check-ignore exits with 1 if nothing is ignored
		t.Fatalf("git %v: %v\n%s", args, err, &stderr)
	}
	return string(out)
}

// makeTree makes files and directories of every name, and returns their paths.
func makeTree(t *testing.T, dir string) []string {
	t.Helper()
	files := []string{"a.c", "b", "ab", "x.log", "#x", "!x", "a b", "c ", "a*", "[a", "]", "-", "a\\b", "\xff", "é", "A", "1", "foo.txt", "a\r"}
	directories := []string{"", "a/", "a/b/", "a/b/a/", "foo/", "foo/ab/", "ab/a/b/"}
	for _, in := range directories {
		if err := os.MkdirAll(filepath.Join(dir, in), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, in := range directories {
		for _, name := range files {
			if _, err := os.Lstat(filepath.Join(dir, in, name)); err == nil {
				continue // a directory
			}
			if err := os.WriteFile(filepath.Join(dir, in, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git":
			return fs.SkipDir
		case path != dir:
			paths = append(paths, strings.TrimPrefix(path, dir+"/"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// writer writes files of patterns.
type writer struct{ *rand.Rand }

// parts are the parts of patterns.
const parts = `a b c x foo ab .c .log .txt * * ** ** ? / / / \ # ! [ ] - ^ [ab] [!a] [^b] [a-c] []] [!]] []-a] [\\] [[:alpha:]] [[:punct:]] [![:digit:]] [[:space:]] [a-] [--0] [[:x:]] [[:a] [b-a] é 1 **/ /** /**/ */`

func (w writer) file(most int) string {
	all := strings.Fields(parts)
	var text strings.Builder
	text.WriteString([]string{"", "", "\xEF\xBB\xBF"}[w.IntN(3)])
	for range w.IntN(most + 1) {
		if w.IntN(4) == 0 {
			text.WriteByte('!')
		}
		for range 1 + w.IntN(5) {
			text.WriteString(all[w.IntN(len(all))])
		}
		text.WriteString([]string{"", "", "/", " ", "\\ ", "\t", "  ", "\x00a"}[w.IntN(8)])
		text.WriteString([]string{"\n", "\n", "\r\n", "\r\r\n"}[w.IntN(4)])
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// tree is a walk's knowledge of the files.
type tree struct {
	t     *testing.T
	files map[string]string
}

// ignored descends to a path, like a walk.
func (tr tree) ignored(dir, path string) bool {
	var s *gitignore.Scope
	s = tr.with(s, "", ".git/info/exclude")
	for i, c := range path + "/" {
		if c != '/' {
			continue
		}
		above := path[:max(strings.LastIndexByte(path[:i], '/'), 0)]
		s = tr.with(s, above, strings.TrimPrefix(above+"/.gitignore", "/"))
		info, err := os.Lstat(filepath.Join(dir, path[:i]))
		if err != nil {
			tr.t.Fatal(err)
		}
		if s.Ignored(path[:i], info.IsDir()) {
			return true
		}
	}
	return false
}

func (tr tree) with(s *gitignore.Scope, dir, file string) *gitignore.Scope {
	text, ok := tr.files[file]
	if !ok {
		return s
	}
	s, err := s.With(dir, parse(tr.t, text))
	if err != nil {
		tr.t.Fatal(err)
	}
	return s
}
