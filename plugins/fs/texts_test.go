package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestCasesTexts checks the fs tools' texts in the table of texts that callers rely on.
func TestCasesTexts(t *testing.T) {
	dir := os.Getenv("TOOLHOST_CASES")
	if dir == "" {
		dir = filepath.Join("testdata", "cases")
	}
	data, err := os.ReadFile(filepath.Join(dir, "texts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Prefix string
		Texts  []struct {
			When, Text string
			Code       tool.Code
			Metadata   []string
		}
	}
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}

	paths := map[string]string{ // when -> the path to read
		"a path that policy or the plugin forbids": "../outside",
		"file does not exist":                      "none.txt",
		"a file cannot be read":                    "directory",
	}
	filled := strings.NewReplacer("{reason}", "it is a directory, not a regular file")
	p := start(t, filetest.Tree(t, map[string]string{"directory/": ""}), tool.MiB)
	ran := 0
	for _, row := range table.Texts {
		path, ok := paths[row.When]
		if !ok {
			continue
		}
		ran++
		t.Run(row.When, func(t *testing.T) {
			got := p.Call(t.Context(), "read_file", readFileArgs{Path: path})
			if got.Error == nil || got.Error.Code != row.Code {
				t.Fatalf("read_file(%s) = %v, want the code %s", path, got.Error, row.Code)
			}
			line, _, _ := strings.Cut(got.Error.ModelText(), "\n")
			if want := table.Prefix + filled.Replace(strings.ReplaceAll(row.Text, "{path}", path)); line != want {
				t.Errorf("a model reads %q, want %q", line, want)
			}
		})
	}
	for _, row := range table.Texts {
		switch row.When {
		case "a file cannot be written":
			got := p.Call(t.Context(), "write_file", writeFileArgs{Path: "directory", Content: "x"})
			if want := table.Prefix + filled.Replace(row.Text); got.Error == nil || got.Error.Code != row.Code || got.Error.ModelText() != want {
				t.Errorf("write_file of a directory: %v, want %s %q", got.Error, row.Code, want)
			}
		case "write_file succeeded":
			got := p.Call(t.Context(), "write_file", writeFileArgs{Path: "new.txt", Content: "12345"})
			if want := strings.NewReplacer("{bytes}", "5", "{path}", "new.txt").Replace(row.Text); got.Text() != want {
				t.Errorf("write_file = %q, want %q", got.Text(), want)
			}
			for _, fact := range row.Metadata {
				if got.Metadata[fact] == nil {
					t.Errorf("write_file tells no %s: %v", fact, got.Metadata)
				}
			}
		default:
			continue
		}
		ran++
	}
	t.Logf("ran %d of %d rows", ran, len(table.Texts))
	if want := len(paths) + 2; ran != want {
		t.Errorf("ran %d rows, want the %d that these tools write", ran, want)
	}
}
