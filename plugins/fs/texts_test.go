package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// TestCasesTexts checks the texts of the table of texts that callers rely on
// which the tools for files write.
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
		}
	}
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}

	paths := map[string]string{ // when -> the path that is read
		"a path that policy or the plugin forbids": "../outside",
		"file does not exist":                      "none.txt",
		"a file cannot be read":                    "directory",
	}
	filled := strings.NewReplacer("{reason}", "it is a directory, not a regular file")
	p := start(t, tree(t, map[string]string{"directory/": ""}), tool.MiB)
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
	t.Logf("ran %d of %d rows", ran, len(table.Texts))
	if ran != len(paths) {
		t.Errorf("ran %d rows, want the %d that these tools write", ran, len(paths))
	}
}
