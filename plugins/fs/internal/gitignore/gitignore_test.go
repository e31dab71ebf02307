package gitignore_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/gitignore"
)

func parse(tb testing.TB, text string) *gitignore.Rules {
	tb.Helper()
	r, err := gitignore.Parse([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// scope returns the scope of one file of patterns at the top.
func scope(tb testing.TB, text string) *gitignore.Scope {
	tb.Helper()
	s, err := (*gitignore.Scope)(nil).With("", parse(tb, text))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// ignored reports what git would say of a file in any directory.
func ignored(s *gitignore.Scope, path string) bool {
	for i, c := range path {
		if c == '/' && s.Ignored(path[:i], true) {
			return true
		}
	}
	return s.Ignored(path, false)
}

// TestCasesGitignore checks every verdict of the table of cases.
func TestCasesGitignore(t *testing.T) {
	dir := os.Getenv("TOOLHOST_CASES")
	if dir == "" {
		dir = filepath.Join("testdata", "cases")
	}
	text, err := os.ReadFile(filepath.Join(dir, "gitignore.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Paths []string
		Cases []struct {
			ID, Gitignore string
			Ignored       []string
		}
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Cases) == 0 || len(table.Paths) == 0 {
		t.Fatal("the table is empty")
	}
	for _, tt := range table.Cases {
		t.Run(tt.ID, func(t *testing.T) {
			s := scope(t, tt.Gitignore)
			for _, path := range table.Paths {
				if got, want := ignored(s, path), slices.Contains(tt.Ignored, path); got != want {
					t.Errorf("%q ignores %q: %v, want %v", tt.Gitignore, path, got, want)
				}
			}
		})
	}
	t.Logf("%d cases, %d verdicts", len(table.Cases), len(table.Cases)*len(table.Paths))
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		name, text, path string
		dir              bool
		want             gitignore.Verdict
	}{
		{"a name", "x", "a/x", false, gitignore.Ignore},
		{"another name", "x", "a/y", false, gitignore.None},
		{"the last counts", "x\n!x", "x", false, gitignore.Include},
		{"a directory only", "x/", "x", false, gitignore.None},
		{"a directory", "x/", "a/x", true, gitignore.Ignore},
		{"a later rule for directories only", "x\n!x/", "x", false, gitignore.Ignore},
		{"at the top", "/x", "a/x", false, gitignore.None},
		{"a path", "a/x", "a/x", false, gitignore.Ignore},
		{"no path below", "a/x", "b/a/x", false, gitignore.None},
		{"an ending", "*.tar.gz", "a/b.tar.gz", false, gitignore.Ignore},
		{"everything", "*", "a", false, gitignore.Ignore},
		{"a star keeps to its part", "a/*", "a/b/c", false, gitignore.None},
		{"two do not", "a/**", "a/b/c", false, gitignore.Ignore},
		{"nor do two in the middle", "a/**/c", "a/b/b/c", false, gitignore.Ignore},
		{"which may be nothing", "a/**/c", "a/c", false, gitignore.Ignore},
		{"and not half a name", "a/**/c", "a/bc", false, gitignore.None},
		{"two within a name are one", "a/?b**", "a/xb/c", false, gitignore.None},
		{"after a plain beginning they are two", "a**/b", "ab", false, gitignore.Ignore},
		{"a star and a slash", "a/*/c", "a/b/c", false, gitignore.Ignore},
		{"a set", "[a-c]x", "bx", false, gitignore.Ignore},
		{"a set without", "[!a-c]x", "bx", false, gitignore.None},
		{"the other spelling", "[^a-c]x", "dx", false, gitignore.Ignore},
		{"a bracket in a set", "[]a]x", "]x", false, gitignore.Ignore},
		{"a named set", "[[:digit:][:upper:]]x", "Gx", false, gitignore.Ignore},
		{"an unknown name", "[[:nothing:]]x", "nx", false, gitignore.None},
		{"a name that does not end", "[[:digit]x", ":x", false, gitignore.Ignore},
		{"a set matches no slash", "a[!b]c", "a/c", false, gitignore.None},
		{"a set that does not end", "a[b", "a[b", false, gitignore.None},
		{"a minus at the end", "[a-]x", "-x", false, gitignore.Ignore},
		{"an escape in a set", `[\]]x`, "]x", false, gitignore.Ignore},
		{"an escaped star", `a\*`, "a*", false, gitignore.Ignore},
		{"an escape of nothing", `a\`, `a\`, false, gitignore.None},
		{"an escaped hash", `\#x`, "#x", false, gitignore.Ignore},
		{"a comment", "#x", "#x", false, gitignore.None},
		{"an escaped exclamation mark", `\!x`, "!x", false, gitignore.Ignore},
		{"spaces at the end", "x  ", "x", false, gitignore.Ignore},
		{"an escaped space at the end", `x\  `, "x ", false, gitignore.Ignore},
		{"carriage returns", "x\r\ny\r\n", "x", false, gitignore.Ignore},
		{"a byte order mark", "\xEF\xBB\xBFx", "x", false, gitignore.Ignore},
		{"a zero byte", "x\x00y", "x", false, gitignore.Ignore},
		{"a name that is not UTF-8", "\xFF?", "\xFF\xFE", false, gitignore.Ignore},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := parse(t, tt.text).Match(tt.path, tt.dir); got != tt.want {
				t.Errorf("Match(%q, %v) by %q = %v, want %v", tt.path, tt.dir, tt.text, got, tt.want)
			}
		})
	}
}

func TestScope(t *testing.T) {
	s := scope(t, "*.log\nbuild/\n/top\n")
	inner, err := s.With("a/b", parse(t, "!keep.log\n/top\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, path := range []string{"x.log", "top", "a/top", "a/b/top", "a/b/c/top", "a/b/x.log", "a/b/keep.log", "a/keep.log", "a/bb/top"} {
		if inner.Ignored(path, false) {
			got = append(got, path)
		}
	}
	want := []string{"x.log", "top", "a/b/top", "a/b/x.log", "a/keep.log"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
	if !inner.Ignored("a/b/build", true) || (*gitignore.Scope)(nil).Ignored("x", false) {
		t.Error("the rules above are not in force, or there are some where none were given")
	}
}

// Too much input is refused with a message.
func TestBounds(t *testing.T) {
	if _, err := gitignore.Parse(make([]byte, gitignore.MaxSize+1)); err == nil || !strings.Contains(err.Error(), "1048577 bytes") {
		t.Errorf("Parse of a large file: %v, want an error with its size", err)
	}
	if _, err := gitignore.Parse([]byte(strings.Repeat("a\n", gitignore.MaxPatterns+1))); err == nil || !strings.Contains(err.Error(), "more than 100000 patterns") {
		t.Errorf("Parse of many patterns: %v, want an error with the bound", err)
	}
	half := parse(t, strings.Repeat("a\n", gitignore.MaxPatterns/2+1))
	s, err := (*gitignore.Scope)(nil).With("", half)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.With("a", half); err == nil || !strings.Contains(err.Error(), "more than 100000 patterns") {
		t.Errorf("With: %v, want an error with the bound", err)
	}
}

// Patterns that take exponential time where each star is tried for itself, and
// so many names that each must not be compared: this test ends.
func TestBombs(t *testing.T) {
	path := strings.Repeat(strings.Repeat("a", 250)+"/", 16) + "c"
	for _, pattern := range []string{
		strings.Repeat("*a", 120) + "*b",
		strings.Repeat("*a", 120) + "*[b]",
		"/" + strings.Repeat("**/", 1000) + "b?",
		"/" + strings.Repeat("**/*a", 500) + "*[b]",
		strings.Repeat("[[:alpha:]]*", 80) + "?b",
	} {
		r := parse(t, pattern)
		for range 10 {
			if r.Match(path, false) != gitignore.None || r.Match(path[:len(path)-2], true) != gitignore.None {
				t.Errorf("%.20q matches, want that it does not", pattern)
			}
		}
	}

	var text strings.Builder
	for i := range gitignore.MaxPatterns / 5 {
		fmt.Fprintf(&text, "name%d\n*.end%d\n/path/%d\n!dir%d/\n", i, i, i, i)
	}
	r := parse(t, text.String())
	for i := range 100_000 {
		if got := r.Match(fmt.Sprintf("path/%d", i), false); (got == gitignore.Ignore) != (i < gitignore.MaxPatterns/5) {
			t.Fatalf("Match(path/%d) = %v", i, got)
		}
	}
}

func FuzzMatch(f *testing.F) {
	for _, pattern := range []string{"a**/b", "[[:alpha:]-z]", "**/a/**", `\ `, "[!]]*?", "!x/"} {
		f.Add(pattern, "a/b", true)
	}
	f.Fuzz(func(t *testing.T, text, path string, dir bool) {
		r, err := gitignore.Parse([]byte(text))
		if err != nil {
			return
		}
		verdict := r.Match(path, dir)
		// Later patterns win.
		if again := parse(t, text+"\n*\n").Match(path, dir); again != gitignore.Ignore {
			t.Errorf("Match(%q) by %q and then * = %v, want %v", path, text, again, gitignore.Ignore)
		}
		if !dir && verdict == gitignore.Ignore && r.Match(path, true) == gitignore.None {
			t.Errorf("%q ignores the file %q and says nothing of a directory", text, path)
		}
	})
}
