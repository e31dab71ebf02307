package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestSearchContent(t *testing.T) {
	dir := project(t)
	runCases(t, dir, 4*tool.KiB, searchContentCases())
}

// nothingInProject is the answer to a search of the whole project without matches.
const nothingInProject = "[nothing found; binary files, which are not searched: 1; 1 sensitive file left out]"

// secretInProject is the end of the answer to a search of the whole project.
const secretInProject = "\n[1 sensitive file left out]"

func searchContentCases() []toolCase {
	return []toolCase{
		{
			tool: "search_content", name: "defaults", in: searchContentArgs{Pattern: "hello"},
			want: ".hidden/notes.md\n1: hello hidden\n\nmain.go\n4: \tprintln(\"hello\")\n\npkg/a/a.go\n3: // Hello says Hello.\n4: func Hello() string { return \"hello\" }\n\n" +
				"pkg/b/data.json\n1: {\"hello\": 1}\n\nvendor/x/x.go\n1: package x // hello\n\n\"wide/\\xff\\xfe.txt\"\n1: hello wide" + secretInProject,
			facts: map[string]any{"matches": 7, "files_matched": 6, "skipped_binary": 1, "skipped_unreadable": 1, "sensitive_left_out": 1},
		},
		{tool: "search_content", name: "below a path", in: searchContentArgs{Pattern: "hello", Path: "pkg/b"}, want: "pkg/b/data.json\n1: {\"hello\": 1}"},
		{tool: "search_content", name: "in a file", in: searchContentArgs{Pattern: "func", Path: "main.go"}, want: "main.go\n3: func main() {"},
		{tool: "search_content", name: "smart case", in: searchContentArgs{Pattern: "Hello", Path: "pkg"}, want: "pkg/a/a.go\n3: // Hello says Hello.\n4: func Hello() string { return \"hello\" }"},
		{tool: "search_content", name: "smart case knows escapes", in: searchContentArgs{Pattern: `todo:\S*\Write`, Path: "README.md"}, want: "[nothing found]"},
		{tool: "search_content", name: "quoted", in: searchContentArgs{Pattern: `\Qmain() {\E$`}, want: "main.go\n3: func main() {" + secretInProject},
		{tool: "search_content", name: "quoted to the end", in: searchContentArgs{Pattern: `func \Qmain() {`}, want: "main.go\n3: func main() {" + secretInProject},
		{tool: "search_content", name: "quoted to the end, across lines", in: searchContentArgs{Pattern: `^func \Qmain() {`, Multiline: true}, want: "main.go\n3: func main() {" + secretInProject},
		{tool: "search_content", name: "smart case knows quotes", in: searchContentArgs{Pattern: `\QTodo:\E\s+write`, Path: "README.md"}, want: "[nothing found]"},
		{tool: "search_content", name: "smart case knows what is no escape", in: searchContentArgs{Pattern: `\Qn\tX\E|\Qtodo\Write\E`, Path: "README.md"}, want: "[nothing found]"},
		{tool: "search_content", name: "no quote", in: searchContentArgs{Pattern: `\\Q|func main`}, want: "main.go\n3: func main() {" + secretInProject},
		{tool: "search_content", name: "sensitive", in: searchContentArgs{Pattern: "todo", IgnoreCase: new(false)}, want: nothingInProject},
		{tool: "search_content", name: "insensitive", in: searchContentArgs{Pattern: "ToDo", IgnoreCase: new(true)}, want: "README.md\n3: TODO: write" + secretInProject},
		{tool: "search_content", name: "literal", in: searchContentArgs{Pattern: "main() {", Literal: true}, want: "main.go\n3: func main() {" + secretInProject},
		{tool: "search_content", name: "word", in: searchContentArgs{Pattern: "pack|to", Word: true}, want: nothingInProject},
		{tool: "search_content", name: "a word of its own", in: searchContentArgs{Pattern: "a|package", Path: "pkg", Word: true}, want: "pkg/a/a.go\n1: package a\n\npkg/a/a_test.go\n1: package a"},
		{tool: "search_content", name: "globs", in: searchContentArgs{Pattern: "package", Globs: []string{"*.go", "!vendor", "!*_test.go"}}, want: "main.go\n1: package main\n\npkg/a/a.go\n1: package a"},
		{tool: "search_content", name: "types", in: searchContentArgs{Pattern: "hello", Types: []string{"json", "markdown"}}, want: ".hidden/notes.md\n1: hello hidden\n\npkg/b/data.json\n1: {\"hello\": 1}"},
		{tool: "search_content", name: "around", in: searchContentArgs{Pattern: "println", Before: 1, After: 2}, want: "main.go\n3- func main() {\n4: \tprintln(\"hello\")\n5- }" + secretInProject},
		{
			tool: "search_content", name: "around, with numbers", in: searchContentArgs{Pattern: "println", Context: 1, Numbers: new(true)},
			want: "main.go\n3- func main() {\n4: \tprintln(\"hello\")\n5- }" + secretInProject,
		},
		{tool: "search_content", name: "an unknown language", in: searchContentArgs{Pattern: "a", Types: []string{"klingon"}}, err: `invalid_argument: type "klingon" is not known`},
		{tool: "search_content", name: "gaps", in: searchContentArgs{Pattern: "^#|TODO", Path: "README.md", Before: 0, After: 0}, want: "README.md\n1: # Project\n3: TODO: write"},
		{tool: "search_content", name: "across lines", in: searchContentArgs{Pattern: `main\(\) \{\n\s+println`, Multiline: true}, want: "main.go\n3: func main() {\n4: \tprintln(\"hello\")" + secretInProject},
		{tool: "search_content", name: "not across lines", in: searchContentArgs{Pattern: `main\(\) \{\s+println`}, want: nothingInProject},
		{tool: "search_content", name: "a line end", in: searchContentArgs{Pattern: `main\(\) \{\n\s+println`}, err: "invalid_argument: pattern has a line end, but without multiline each line is searched by itself"},
		{tool: "search_content", name: "a literal line end", in: searchContentArgs{Pattern: "\tprintln(\"hello\")\n}", Literal: true}, err: "invalid_argument: pattern has a line end, but without multiline each line is searched by itself"},
		{
			tool: "search_content", name: "a line end in some", in: searchContentArgs{Pattern: `TODO|\n\n#`, Path: "README.md"},
			want: "README.md\n3: TODO: write\n[the line end in pattern matches with multiline=true only]", facts: map[string]any{"incomplete": true},
		},
		{tool: "search_content", name: "a directory as a glob", in: searchContentArgs{Pattern: "hello", Globs: []string{"a/"}, OutputMode: "files_with_matches"}, want: "pkg/a/a.go"},
		{tool: "search_content", name: "an absolute glob", in: searchContentArgs{Pattern: "a", Globs: []string{"/src/*.go"}}, err: `invalid_argument: "/src/*.go" is absolute, but a glob is matched with paths relative to path`},
		{tool: "search_content", name: "files", in: searchContentArgs{Pattern: "package a", OutputMode: "files_with_matches"}, want: "pkg/a/a.go\npkg/a/a_test.go" + secretInProject},
		{tool: "search_content", name: "count", in: searchContentArgs{Pattern: "hello", Path: "pkg", OutputMode: "count"}, want: "pkg/a/a.go: 2\npkg/b/data.json: 1", facts: map[string]any{"matches": 3}},
		{
			tool: "search_content", name: "enough", in: searchContentArgs{Pattern: "package", MaxResults: 1}, facts: map[string]any{"more": true, "matches": 1, "total": 4, "next_cursor": "1-2873f79a86c0d8b3"},
			want: "main.go\n1: package main" + secretInProject + "\n[1 of 4 matches; continue with cursor=\"1-2873f79a86c0d8b3\"]",
		},
		{
			tool: "search_content", name: "the next", in: searchContentArgs{Pattern: "package", MaxResults: 2, Paged: sdk.Paged{Cursor: "1-2873f79a86c0d8b3"}}, facts: map[string]any{"total": nil},
			want: "pkg/a/a.go\n1: package a\n\npkg/a/a_test.go\n1: package a\n[2 of the last 3 matches; continue with cursor=\"1-355460f16dce5e79\"]",
		},
		{tool: "search_content", name: "just enough", in: searchContentArgs{Pattern: "TODO", MaxResults: 1}, want: "README.md\n3: TODO: write" + secretInProject, facts: map[string]any{"more": nil}},
		{tool: "search_content", name: "a secret", in: searchContentArgs{Pattern: "hello", Path: ".env"}, err: "permission_denied: Path not allowed by security policy: .env"},
		{tool: "search_content", name: "bad pattern", in: searchContentArgs{Pattern: "a("}, err: "invalid_argument: pattern is not a regular expression: error parsing regexp: missing closing ): `a(`"},
		{tool: "search_content", name: "costly pattern", in: searchContentArgs{Pattern: "a{1000}b{1000}"}, err: "invalid_argument: pattern is too costly to search for: 2002 steps for each byte, the maximum is 2000"},
		{tool: "search_content", name: "no pattern", in: searchContentArgs{}, err: "invalid_argument: pattern has 0 bytes, expected 1 to 4096"},
		{tool: "search_content", name: "bad glob", in: searchContentArgs{Pattern: "a", Globs: []string{"!["}}, err: `invalid_argument: "[" is not a glob`},
		{tool: "search_content", name: "bad type", in: searchContentArgs{Pattern: "a", Types: []string{"cobol"}}, err: `invalid_argument: type "cobol" is not known`},
		{tool: "search_content", name: "too much around", in: searchContentArgs{Pattern: "a", After: 51}, err: "invalid_argument: before, after and context are 0, 51 and 0, expected 0 to 50"},
		{tool: "search_content", name: "max_results -1", in: searchContentArgs{Pattern: "a", MaxResults: -1}, err: "invalid_argument: max_results is -1, expected at least 1"},
		{tool: "search_content", name: "ignored or not", in: map[string]any{"pattern": "func", "path": "main.go", "gitignore": false}, want: "main.go\n3: func main() {"},
		{tool: "search_content", name: "outside", in: searchContentArgs{Pattern: "root", Path: "out"}, err: "permission_denied: Path not allowed by security policy: out"},
	}
}

func TestSearchContentLongLines(t *testing.T) {
	long := strings.Repeat("a", 3000) + "needle" + strings.Repeat("b", 3000)
	dir := filetest.Tree(t, map[string]string{
		"min.js":   long,
		"huge.txt": strings.Repeat("x", 3<<20) + "needle\nneedle after\n",
		"crlf.txt": "one needle\r\ntwo\r\n",
		"late.txt": strings.Repeat("needle\n", 2) + strings.Repeat("x", textfile.HeadSize) + "\n\x00needle\nneedle\n",
		"u16.txt":  "\xFF\xFEn\x00e\x00e\x00d\x00l\x00e\x00",
	})
	runCases(t, dir, 4*tool.KiB, []toolCase{
		{tool: "search_content", name: "cut to what is around the match", in: searchContentArgs{Pattern: "needle", Path: "min.js"}, want: "min.js\n1: …" + strings.Repeat("a", 125) + "needle" + strings.Repeat("b", 369) + "…"},
		{tool: "search_content", name: "searched to its end", in: searchContentArgs{Pattern: "needle$", Path: "huge.txt"}, want: "huge.txt\n1: …" + strings.Repeat("x", 494) + "needle"},
		{tool: "search_content", name: "the end of a line", in: searchContentArgs{Pattern: "needle$", Path: "crlf.txt"}, want: "crlf.txt\n1: one needle"},
		{tool: "search_content", name: "up to what is not text", in: searchContentArgs{Pattern: "needle", Path: "late.txt"}, want: "late.txt\n1: needle\n2: needle\n[not searched from the line on that has a zero byte: late.txt; it is not all text]", facts: map[string]any{"skipped_binary": 1}},
		{tool: "search_content", name: "UTF-16", in: searchContentArgs{Pattern: "^needle$", Path: "u16.txt"}, want: "u16.txt\n1: needle"},
	})
}

// A search returns the same result each time, even if it stops early: the result of a sequential
// search.
func TestSearchContentIsInOrder(t *testing.T) {
	files := map[string]string{}
	for i := range 400 {
		files[fmt.Sprintf("d%d/e%d/f%03d.txt", i%5, i%3, i)] = strings.Repeat(fmt.Sprintf("needle %d\nother\n", i), i%4)
		files[fmt.Sprintf("d%d.txt", i%5)] = "needle\n"
	}
	dir := filetest.Tree(t, files)
	var names []string
	for name, text := range files {
		if text != "" {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, filetree.Compare)
	p := start(t, dir, 64*tool.KiB)
	for _, most := range []int{1, 7, 50, 5000} {
		want := strings.Join(names[:min(most, len(names))], "\n")
		for range 5 {
			got := p.Call(t.Context(), "search_content", map[string]any{"pattern": "needle", "output_mode": "files_with_matches", "max_results": most})
			if text, _, _ := strings.Cut(got.Text(), "\n["); text != want {
				t.Fatalf("max_results %d:\n%s\nwant\n%s", most, text, want)
			}
		}
	}
	for _, in := range []searchContentArgs{{Pattern: "needle", MaxResults: 30, After: 1, Before: 1}, {Pattern: "needle", OutputMode: "count", MaxResults: 10}} {
		first := p.Call(t.Context(), "search_content", in).Text()
		for range 10 {
			if got := p.Call(t.Context(), "search_content", in).Text(); got != first {
				t.Fatalf("%+v gives\n%s\nand then\n%s", in, first, got)
			}
		}
	}
}

// Search tools leave out files that git ignores, unless told otherwise.
func TestGitignore(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{
		".gitignore": "*.log\n/build/\n!keep.log\n", "a.log": "needle\n", "a.txt": "needle\n", "build/b.txt": "needle\n",
		"sub/.gitignore": "/own.txt\n", "sub/own.txt": "needle\n", "sub/keep.log": "needle\n", "sub/build/c.txt": "needle\n",
	})
	const kept, all = "a.txt\nsub/build/c.txt\nsub/keep.log", "a.log\na.txt\nbuild/b.txt\nsub/build/c.txt\nsub/keep.log\nsub/own.txt"
	runCases(t, dir, 4*tool.KiB, []toolCase{
		{tool: "search_content", name: "content", in: searchContentArgs{Pattern: "needle", OutputMode: "files_with_matches"}, want: kept},
		{tool: "search_content", name: "all content", in: map[string]any{"pattern": "needle", "output_mode": "files_with_matches", "gitignore": false}, want: all},
		{tool: "search_content", name: "below", in: searchContentArgs{Pattern: "needle", OutputMode: "files_with_matches", Path: "sub"}, want: "sub/build/c.txt\nsub/keep.log"},
		{tool: "search_content", name: "named", in: searchContentArgs{Pattern: "needle", OutputMode: "files_with_matches", Path: "build"}, want: "build/b.txt"},
		{tool: "search_content", name: "a file that is named", in: searchContentArgs{Pattern: "needle", OutputMode: "files_with_matches", Path: "a.log"}, want: "a.log"},
		{tool: "search_files", name: "names", in: searchFilesArgs{Pattern: "*.{txt,log}"}, want: kept},
		{tool: "search_files", name: "all names", in: map[string]any{"pattern": "*.{txt,log}", "gitignore": false}, want: all},
		{tool: "list_directory", name: "a list has all", in: listDirectoryArgs{}, want: "a.log  7\na.txt  7\nbuild/\nsub/\n[1 hidden entries are not shown; list them with hidden=true]"},
		{tool: "list_directory", name: "unless it is told", in: listDirectoryArgs{Gitignore: true}, want: "a.txt  7\nsub/\n[1 hidden entries are not shown; list them with hidden=true]"},
	})
}

// Lines around matches are not shown for a match that is one too many.
func TestSearchContentTrims(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"a.txt": "x 1\n2\n3\n4\n5\nx 6\n7\n8\nx 9\n", "b.txt": "x\n"})
	runCases(t, dir, 4*tool.KiB, []toolCase{
		{
			tool: "search_content", name: "two of them", in: searchContentArgs{Pattern: "x", Before: 1, After: 1, MaxResults: 2},
			want: "a.txt\n1: x 1\n2- 2\n--\n5- 5\n6: x 6\n7- 7\n[2 of 4 matches; continue with cursor=\"7-18b7cb099a9ea3f5\"]",
		},
		{
			tool: "search_content", name: "all of the first file", in: searchContentArgs{Pattern: "x", MaxResults: 3},
			want: "a.txt\n1: x 1\n6: x 6\n9: x 9\n[3 of 4 matches; continue with cursor=\"9-18b7cb099a9ea3f5\"]",
		},
	})
}

// The end of the context ends a search, also within one file that has no end
// of line.
func TestSearchContentEnds(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"a.txt": strings.Repeat("x", 2*textfile.HeadSize)})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for _, path := range []string{".", "a.txt"} {
		in := searchContentArgs{Pattern: "x", Path: path, MaxResults: 1, OutputMode: "content"}
		if _, err := searchContent(ctx, workspaceOf(t, dir, 1000), in); !errors.Is(err, cause) {
			t.Errorf("searchContent(%s) = %v, want %v", path, err, cause)
		}
	}
}

func TestFileInfo(t *testing.T) {
	dir := project(t)
	// Whatever the umask is.
	if err := errors.Join(os.Chmod(filepath.Join(dir, "main.go"), 0o640), os.Chmod(filepath.Join(dir, "pkg"), 0o750)); err != nil {
		t.Fatal(err)
	}
	p := start(t, dir, 4*tool.KiB)
	for _, tt := range []struct {
		path string
		want []string // lines of the result
	}{
		{"main.go", []string{"path: main.go", "type: file", "size: 48 bytes", "mode: 0640", "media type: text/plain; charset=utf-8", "encoding: utf-8", "lines: 5", "line ends: lf", "hash: " + hashOf(t, dir, "main.go")}},
		{"pkg", []string{"path: pkg", "type: directory", "mode: 0750"}},
		{"link", []string{"type: symlink", "target: main.go"}},
		{"out", []string{"type: symlink", "target: (outside the workspace)"}},
		{"pkg/b/big.bin", []string{"size: 12001 bytes", "media type: application/octet-stream", "hash: " + hashOf(t, dir, "pkg/b/big.bin")}},
	} {
		got := p.Call(t.Context(), "file_info", fileInfoArgs{Path: tt.path})
		for _, want := range tt.want {
			if !strings.Contains("\n"+got.Text()+"\n", "\n"+want+"\n") {
				t.Errorf("file_info(%s) lacks the line %q:\n%s%v", tt.path, want, got.Text(), got.Error)
			}
		}
	}
	runCases(t, dir, 4*tool.KiB, fileInfoCases())
}

// hashOf returns the hash of a file as results show it.
func hashOf(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(data))
}

func fileInfoCases() []toolCase {
	return []toolCase{
		{tool: "file_info", name: "missing", in: fileInfoArgs{Path: "none"}, err: "not_found: File not found: none"},
		{tool: "file_info", name: "a secret", in: fileInfoArgs{Path: ".env"}, err: "permission_denied: Path not allowed by security policy: .env"},
		{tool: "file_info", name: "outside", in: fileInfoArgs{Path: "/proc/self/environ"}, err: "permission_denied: Path not allowed by security policy: /proc/self/environ"},
	}
}

func TestDiffFiles(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{
		"old.txt": "a\nb\nc\nd\n-- e\n", "new.txt": "a\nb\nX\nd\n", "same.txt": "a\nb\nX\nd\n", "data.bin": "\x00", "lines.txt": numbered(5000), "empty.txt": "",
	})
	runCases(t, dir, 4*tool.KiB, diffFilesCases())
}

func diffFilesCases() []toolCase {
	return []toolCase{
		{
			tool: "diff_files", name: "a diff", in: diffFilesArgs{Path: "old.txt", Other: "new.txt"},
			want:  "--- a/old.txt\n+++ b/new.txt\n@@ -1,5 +1,4 @@\n a\n b\n-c\n+X\n d\n--- e\n",
			facts: map[string]any{"added": 1, "removed": 2},
		},
		{
			tool: "diff_files", name: "less context", in: diffFilesArgs{Path: "old.txt", Other: "new.txt", Context: 1},
			want: "--- a/old.txt\n+++ b/new.txt\n@@ -2,4 +2,3 @@\n b\n-c\n+X\n d\n--- e\n",
		},
		{tool: "diff_files", name: "the same", in: diffFilesArgs{Path: "new.txt", Other: "same.txt"}, want: "[the files have the same text]"},
		{tool: "diff_files", name: "binary", in: diffFilesArgs{Path: "new.txt", Other: "data.bin"}, err: "failed: data.bin is not text: application/octet-stream, 1 bytes"},
		{tool: "diff_files", name: "missing", in: diffFilesArgs{Path: "new.txt", Other: "none"}, err: "not_found: File not found: none"},
		{tool: "diff_files", name: "outside", in: diffFilesArgs{Path: "/etc/passwd", Other: "new.txt"}, err: "permission_denied: Path not allowed by security policy: /etc/passwd"},
		{tool: "diff_files", name: "context -1", in: diffFilesArgs{Path: "new.txt", Other: "new.txt", Context: -1}, err: "invalid_argument: context is -1, expected 1 to 1000"},
	}
}

func TestDiffFilesBounds(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"empty.txt": "", "lines.txt": numbered(5000), "big.txt": strings.Repeat("x", snapshot.MaxDiff+1)})
	p := start(t, dir, 4*tool.KiB)
	got := p.Call(t.Context(), "diff_files", diffFilesArgs{Path: "empty.txt", Other: "lines.txt"}).Text()
	if !strings.HasSuffix(got, " bytes of the diff; use read_file to look at the rest]") || len(got) > 4<<10 {
		t.Errorf("a long diff has %d bytes and ends in %q, want at most 4 KiB and a note", len(got), got[max(len(got)-80, 0):])
	}
	if got, want := message(p.Call(t.Context(), "diff_files", diffFilesArgs{Path: "empty.txt", Other: "big.txt"})), "resource_exhausted: big.txt has 4194305 bytes, at most 4194304 can be compared"; got != want {
		t.Errorf("a large file: %q, want %q", got, want)
	}
}
