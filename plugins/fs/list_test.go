package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
	"github.com/toolhost/toolhost/plugins/fs/internal/page"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// project makes a small workspace in which every file has another age.
func project(tb testing.TB) string {
	tb.Helper()
	dir := filetest.Tree(tb, map[string]string{
		"README.md":         "# Project\n\nTODO: write\n",
		"main.go":           "package main\n\nfunc main() {\n\tprintln(\"hello\")\n}\n",
		"pkg/a/a.go":        "package a\n\n// Hello says Hello.\nfunc Hello() string { return \"hello\" }\n",
		"pkg/a/a_test.go":   "package a\n",
		"pkg/b/data.json":   "{\"hello\": 1}\n",
		"pkg/b/big.bin":     "\x00" + strings.Repeat("hello ", 2000),
		"vendor/x/x.go":     "package x // hello\n",
		".hidden/notes.md":  "hello hidden\n",
		".git/config":       "hello git\n",
		".env":              "hello secret\n",
		".ssh/config":       "hello ssh\n",
		"link":              "-> main.go",
		"out":               "-> /etc/passwd",
		"up":                "-> ../../x",
		"with\nbreak.txt":   "",
		"wide/\xff\xfe.txt": "hello wide\n",
	})
	now := time.Now()
	for age, name := range []string{"main.go", "README.md", "pkg/a/a.go", "pkg/a/a_test.go", "pkg/b/data.json", "pkg/b/big.bin", "vendor/x/x.go"} {
		at := now.Add(-time.Duration(age) * 24 * time.Hour)
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

func TestListDirectory(t *testing.T) {
	runCases(t, project(t), 4*tool.KiB, listDirectoryCases())
}

func listDirectoryCases() []toolCase {
	return []toolCase{
		{
			tool: "list_directory", name: "defaults", in: listDirectoryArgs{},
			want: "README.md  23\nlink -> main.go\nmain.go  48\nout -> (outside the workspace)\npkg/\nup -> (outside the workspace)\nvendor/\nwide/\n\"with\\nbreak.txt\"  0\n" +
				"[4 hidden entries are not shown; list them with hidden=true]",
			facts: map[string]any{"shown": 9, "total": 9, "next_cursor": nil},
		},
		{tool: "list_directory", name: "a path", in: listDirectoryArgs{Path: "pkg/a"}, want: "a.go  71\na_test.go  10"},
		{tool: "list_directory", name: "deep", in: listDirectoryArgs{Path: "pkg", Depth: 2}, want: "a/\na/a.go  71\na/a_test.go  10\nb/\nb/big.bin  12001\nb/data.json  13"},
		{tool: "list_directory", name: "hidden", in: listDirectoryArgs{Path: ".hidden", Hidden: true}, want: "notes.md  13"},
		{
			tool: "list_directory", name: "secrets are listed, not entered", in: listDirectoryArgs{Hidden: true, Depth: 9, Sort: "name", Args: page.Args{Limit: 4}},
			want:  ".env  13\n.git/\n.git/config  10\n.hidden/\n[1-4 of 24; continue with cursor=\"4\"]",
			facts: map[string]any{"next_cursor": "4"},
		},
		{
			tool: "list_directory", name: "the next page", in: listDirectoryArgs{Args: page.Args{Paged: sdk.Paged{Cursor: "7"}, Limit: 9}},
			want: "wide/\n\"with\\nbreak.txt\"  0\n[4 hidden entries are not shown; list them with hidden=true]",
		},
		{tool: "list_directory", name: "without what is ignored", in: listDirectoryArgs{Path: "pkg/b", Gitignore: true}, want: "big.bin  12001\ndata.json  13"},
		{tool: "list_directory", name: "by size", in: listDirectoryArgs{Path: "pkg/b", Sort: "size"}, want: "big.bin  12001\ndata.json  13"},
		{tool: "list_directory", name: "by time", in: listDirectoryArgs{Path: "pkg/a", Sort: "modified"}, want: "a.go  71\na_test.go  10"},
		{tool: "list_directory", name: "a name that is not UTF-8", in: listDirectoryArgs{Path: "wide"}, want: `"\xff\xfe.txt"  11`},
		{tool: "list_directory", name: "past the end", in: listDirectoryArgs{Path: "wide", Args: page.Args{Paged: sdk.Paged{Cursor: "100"}}}, want: `[nothing at cursor="100": the list has 1 entries now; start again without cursor]`},
		{tool: "list_directory", name: "far past the end", in: listDirectoryArgs{Args: page.Args{Paged: sdk.Paged{Cursor: "9999999999999"}}}, want: "[nothing at cursor=\"9999999999999\": the list has 9 entries now; start again without cursor]\n[4 hidden entries are not shown; list them with hidden=true]"},
		{tool: "list_directory", name: "a file", in: listDirectoryArgs{Path: "main.go"}, err: "failed: Not a directory: main.go"},
		{tool: "list_directory", name: "missing", in: listDirectoryArgs{Path: "none"}, err: "not_found: File not found: none"},
		{tool: "list_directory", name: "outside", in: listDirectoryArgs{Path: "/etc"}, err: "permission_denied: Path not allowed by security policy: /etc"},
		{tool: "list_directory", name: "a secret", in: listDirectoryArgs{Path: ".ssh"}, err: "permission_denied: Path not allowed by security policy: .ssh"},
		{tool: "list_directory", name: "depth -1", in: listDirectoryArgs{Depth: -1}, err: "invalid_argument: depth is -1, expected at least 1"},
		{tool: "list_directory", name: "limit -1", in: listDirectoryArgs{Args: page.Args{Limit: -1}}, err: "invalid_argument: limit is -1, expected at least 1"},
		{tool: "list_directory", name: "cursor", in: listDirectoryArgs{Args: page.Args{Paged: sdk.Paged{Cursor: "x"}}}, err: `invalid_argument: argument "cursor" is "x", which is not valid: expected next_cursor of the previous result, or no cursor to start again`},
	}
}

// Pages that are cut by the budget, put together, are the whole list.
func TestListDirectoryPages(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i := range 1000 {
		name := fmt.Sprintf("file-%04d.txt", i)
		want = append(want, name+"  0")
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, dir, 4*tool.KiB)
	var got []string
	in := listDirectoryArgs{}
	for range len(want) {
		result := p.Call(t.Context(), "list_directory", in)
		if n := len(result.Text()); n > 4<<10 {
			t.Fatalf("page has %d bytes, want at most 4 KiB", n)
		}
		got = append(got, strings.Split(string(result.Content[0].Data), "\n")...)
		next, more := result.Metadata["next_cursor"].(string)
		if !more {
			break
		}
		in.Cursor = sdk.Cursor(next)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("pages put together have %d lines and differ from the %d files", len(got), len(want))
	}
}

func TestSearchFiles(t *testing.T) {
	runCases(t, project(t), 4*tool.KiB, searchFilesCases())
}

func searchFilesCases() []toolCase {
	yesterday := time.Now().Add(-36 * time.Hour)
	return []toolCase{
		{tool: "search_files", name: "a name", in: searchFilesArgs{Pattern: "*.go"}, want: "main.go\npkg/a/a.go\npkg/a/a_test.go\nvendor/x/x.go"},
		{tool: "search_files", name: "a path", in: searchFilesArgs{Pattern: "pkg/**/*.{json,bin}"}, want: "pkg/b/big.bin\npkg/b/data.json"},
		{tool: "search_files", name: "below a directory", in: searchFilesArgs{Pattern: "./a/*", Path: "pkg"}, want: "pkg/a/a.go\npkg/a/a_test.go"},
		{tool: "search_files", name: "excluding", in: searchFilesArgs{Pattern: "*.go", Exclude: []string{"vendor/", "*_test.go"}}, want: "main.go\npkg/a/a.go"},
		{tool: "search_files", name: "directories", in: searchFilesArgs{Pattern: "?", Type: "directory"}, want: "pkg/a/\npkg/b/\nvendor/x/"},
		{tool: "search_files", name: "links", in: searchFilesArgs{Pattern: "*", Type: "symlink"}, want: "link\nout\nup"},
		{tool: "search_files", name: "files", in: searchFilesArgs{Pattern: "*a*", Type: "file"}, want: "main.go\npkg/a/a.go\npkg/a/a_test.go\npkg/b/data.json\n\"with\\nbreak.txt\""},
		{tool: "search_files", name: "large", in: searchFilesArgs{Pattern: "*", Size: ">1KiB"}, want: "pkg/b/big.bin"},
		{tool: "search_files", name: "small", in: searchFilesArgs{Pattern: "pkg/**", Size: "<13B"}, want: "pkg/a/a_test.go"},
		{tool: "search_files", name: "changed since", in: searchFilesArgs{Pattern: "*.{go,md}", Path: ".", Modified: "36h", Exclude: []string{".*"}}, want: "README.md\nmain.go"},
		{tool: "search_files", name: "changed since a time", in: searchFilesArgs{Pattern: "*.go", Modified: yesterday.Format(time.RFC3339)}, want: "main.go"},
		{tool: "search_files", name: "the newest", in: searchFilesArgs{Pattern: "*.{go,md}", Exclude: []string{".*"}, Sort: "modified"}, want: "main.go\nREADME.md\npkg/a/a.go\npkg/a/a_test.go\nvendor/x/x.go"},
		{
			tool: "search_files", name: "a page of the newest", in: searchFilesArgs{Pattern: "pkg/**", Type: "file", Sort: "modified", Args: page.Args{Limit: 1, Paged: sdk.Paged{Cursor: "1"}}},
			want: "pkg/a/a_test.go\n[2-2 of 4; continue with cursor=\"2\"]", facts: map[string]any{"next_cursor": "2", "total": 4},
		},
		{
			tool: "search_files", name: "a page", in: searchFilesArgs{Pattern: "*.go", Args: page.Args{Limit: 2}},
			want: "main.go\npkg/a/a.go\n[1-2 of 4; continue with cursor=\"2\"]", facts: map[string]any{"next_cursor": "2", "total": 4},
		},
		{
			tool: "search_files", name: "the last page", in: searchFilesArgs{Pattern: "*.go", Args: page.Args{Limit: 2, Paged: sdk.Paged{Cursor: "2"}}},
			want: "pkg/a/a_test.go\nvendor/x/x.go", facts: map[string]any{"next_cursor": nil},
		},
		{tool: "search_files", name: "ignored or not", in: map[string]any{"pattern": "a.go", "gitignore": false}, want: "pkg/a/a.go"},
		{tool: "search_files", name: "past the end", in: searchFilesArgs{Pattern: "*.go", Args: page.Args{Paged: sdk.Paged{Cursor: "9"}}}, want: `[nothing at cursor="9": the list has 4 entries now; start again without cursor]`},
		{tool: "search_files", name: "a slash at the end", in: searchFilesArgs{Pattern: "?/", Exclude: []string{"vendor"}}, want: "pkg/a/\npkg/b/"},
		{tool: "search_files", name: "a slash at the end of files", in: searchFilesArgs{Pattern: "?/", Type: "file"}, err: "invalid_argument: pattern ends in a slash, which only directories do, but type is file"},
		{tool: "search_files", name: "absolute, but outside", in: searchFilesArgs{Pattern: "/etc/*"}, err: "permission_denied: Path not allowed by security policy: /etc"},
		{tool: "search_files", name: "out of the path", in: searchFilesArgs{Pattern: "../*.go", Path: "pkg"}, err: `invalid_argument: "../*.go" leads out of path`},
		{tool: "search_files", name: "larger than any file", in: searchFilesArgs{Pattern: "*", Size: ">9223372036854775807B"}, want: "[nothing found]"},
		{tool: "search_files", name: "a size without a unit", in: searchFilesArgs{Pattern: "*", Size: ">1"}, err: `invalid_argument: size is ">1", expected a unit behind the number`},
		{tool: "search_files", name: "nothing", in: searchFilesArgs{Pattern: "*.rs"}, want: "[nothing found]"},
		{tool: "search_files", name: "bad glob", in: searchFilesArgs{Pattern: "[a"}, err: `invalid_argument: "[a" is not a glob`},
		{tool: "search_files", name: "alternatives without end", in: searchFilesArgs{Pattern: strings.Repeat("{a,b}", 10)}, err: `invalid_argument: "` + strings.Repeat("{a,b}", 10) + `" has too many alternatives`},
		{tool: "search_files", name: "bad exclude", in: searchFilesArgs{Pattern: "*", Exclude: []string{"{a"}}, err: `invalid_argument: "{a" is not a glob`},
		{tool: "search_files", name: "bad size", in: searchFilesArgs{Pattern: "*", Size: "1MB"}, err: `invalid_argument: size is "1MB", expected > or < and a size`},
		{tool: "search_files", name: "bad time", in: searchFilesArgs{Pattern: "*", Modified: "soon"}, err: `invalid_argument: modified is "soon", expected a time or how long ago it was`},
		{tool: "search_files", name: "missing", in: searchFilesArgs{Pattern: "*", Path: "none"}, err: "not_found: File not found: none"},
		{tool: "search_files", name: "outside", in: searchFilesArgs{Pattern: "*", Path: ".."}, err: "permission_denied: Path not allowed by security policy: .."},
	}
}

// An absolute pattern is for the paths that it names.
func TestSearchFilesAbsolute(t *testing.T) {
	dir, other := project(t), filetest.Tree(t, map[string]string{"main.go": "", "a/main.go": ""})
	p := sdktest.Start(t, newPlugin(), sdktest.Options{Context: tool.Context{Roots: []string{dir, other}, MaxOutput: 4 * tool.KiB}})
	for _, tt := range []struct{ pattern, path, want, err string }{
		{dir + "/main.go", ".", "main.go", ""},
		{dir + "/**/*.go", ".", "main.go\npkg/a/a.go\npkg/a/a_test.go\nvendor/x/x.go", ""},
		{dir + "/pkg/*/", ".", "pkg/a/\npkg/b/", ""},
		{dir + "/pkg/a/*", "pkg", "pkg/a/a.go\npkg/a/a_test.go", ""},
		{other + "/*.go", ".", other + "/main.go", ""},
		{dir + "/pkg/*", "vendor", "", "invalid_argument: pattern is for files below pkg, which is not below path, vendor"},
		{dir + "/none/*", ".", "", "not_found: File not found: none"},
	} {
		got := p.Call(t.Context(), "search_files", searchFilesArgs{Pattern: tt.pattern, Path: tt.path})
		if got.Text() != tt.want || message(got) != tt.err {
			t.Errorf("search_files(%s) in %s = %q, %q, want %q, %q", strings.TrimPrefix(tt.pattern, dir), tt.path, got.Text(), message(got), tt.want, tt.err)
		}
	}
}

// A cursor reaches the names beyond the count, in the order of names. In another order, a note
// says that names are missing.
func TestListDirectoryIsHonest(t *testing.T) {
	files := map[string]string{}
	for i := range 30 {
		files[fmt.Sprintf("f%02d", i)] = strings.Repeat("x", i)
	}
	w := workspaceOf(t, filetest.Tree(t, files), 4*tool.KiB)
	w.maxCounted = 10
	for _, tt := range []struct {
		in   listDirectoryArgs
		want string
	}{
		{listDirectoryArgs{Sort: "name", Args: page.Args{Limit: 2}}, "f00  0\nf01  1\n[1-2 of more than 10; continue with cursor=\"2\"]"},
		{listDirectoryArgs{Sort: "name", Args: page.Args{Limit: 2, Paged: sdk.Paged{Cursor: "20"}}}, "f20  20\nf21  21\n[21-22 of more than 23; continue with cursor=\"22\"]"},
		{listDirectoryArgs{Sort: "name", Args: page.Args{Limit: 2, Paged: sdk.Paged{Cursor: "28"}}}, "f28  28\nf29  29"},
		{
			listDirectoryArgs{Sort: "size", Args: page.Args{Limit: 2}},
			"f09  9\nf08  8\n[1-2 of more than 10; continue with cursor=\"2\"]\n[only the first 10 entries in the order of names were sorted; sort=name lists the others]",
		},
	} {
		tt.in.Path, tt.in.Depth = ".", 1
		got, err := listDirectory(t.Context(), w, tt.in)
		if err != nil || got.Text() != tt.want {
			t.Errorf("list_directory(%+v) = %q, %v, want %q", tt.in, got.Text(), err, tt.want)
		}
	}
}

// Temporary files of a running or killed writer are not listed.
func TestTemporariesAreHidden(t *testing.T) {
	const name = ".toolhost-ABCDEFGHIJKLMNOPQRSTUVWXYZ.tmp"
	dir := filetest.Tree(t, map[string]string{
		"a.txt": "needle\n", name: "needle\n", "sub/" + name + "/x.txt": "needle\n", ".toolhost-mine.tmp": "needle\n", "sub/b.txt": "needle\n",
	})
	runCases(t, dir, 4*tool.KiB, []toolCase{
		{tool: "list_directory", name: "a list", in: listDirectoryArgs{Hidden: true, Depth: 3}, want: ".toolhost-mine.tmp  7\na.txt  7\nsub/\nsub/b.txt  7"},
		{tool: "list_directory", name: "what is hidden", in: listDirectoryArgs{}, want: "a.txt  7\nsub/\n[1 hidden entries are not shown; list them with hidden=true]"},
		{tool: "search_files", name: "names", in: searchFilesArgs{Pattern: "*"}, want: ".toolhost-mine.tmp\na.txt\nsub/\nsub/b.txt"},
		{tool: "search_content", name: "content", in: searchContentArgs{Pattern: "needle", OutputMode: "files_with_matches"}, want: ".toolhost-mine.tmp\na.txt\nsub/b.txt"},
	})
}

// An entry that is gone when it is examined keeps its place, and so do cursors.
func TestListDirectoryOfWhatIsGone(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"a.txt": "", "b.txt": "b", "link": "-> a.txt"})
	w := workspaceOf(t, dir, 4*tool.KiB)
	files, err := filetree.Open(w.Roots, ".", filetree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	l := &directoryList{workspace: w}
	var got []string
	for e, err := range files.Walk(t.Context()) {
		if len(got) == 0 {
			err = errors.Join(err, os.Remove(dir+"/b.txt"), os.Remove(dir+"/link"))
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, l.look(e).line())
	}
	if diff := cmp.Diff([]string{"a.txt  0", "b.txt  ?", "link -> ?"}, got); diff != "" {
		t.Errorf("a list (-want +got):\n%s", diff)
	}
}
