//go:build !race

package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/notebook"
	"github.com/toolhost/toolhost/plugins/fs/internal/page"
	"github.com/toolhost/toolhost/sdk/tool"
)

const smallNotebook = `{"cells":[{"cell_type":"markdown","source":["# Sum\n","of two"]},` +
	`{"cell_type":"code","execution_count":3,"source":"1+1","outputs":[{"data":{"text/plain":"2","image/png":"AAAA"},"output_type":"execute_result"}]}],` +
	`"metadata":{"language_info":{"name":"python"}},"nbformat":4}`

// A notebook is shown by cells, in windows like any text. What cannot be shown so is shown as JSON.
func TestReadNotebook(t *testing.T) {
	const whole = "[cell 1, markdown]\n# Sum\nof two\n\n[cell 2, code, run 3]\n1+1\n[output]\n2\n[output: image/png, 3 bytes]\n\n"
	dir := filetest.Tree(t, map[string]string{
		"a.ipynb": smallNotebook, "b.IPYNB": "\xEF\xBB\xBF" + smallNotebook, "empty.ipynb": "", "none.ipynb": `{"cells":[]}`,
		"wrong.ipynb": `{"cells":[1]}`, "binary.ipynb": "\x00\x01",
	})
	runCases(t, dir, 1000+page.NoteRoom, []toolCase{
		{tool: "read_file", name: "whole", in: readFileArgs{Path: "a.ipynb"}, want: whole, facts: map[string]any{
			"cells": 2, "language": "python", "total_bytes": len(smallNotebook), "total_lines": 10, "eol": nil,
			"hash": fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(smallNotebook))), "next_offset": nil,
		}},
		{tool: "read_file", name: "by name", in: readFileArgs{Path: "b.IPYNB"}, want: whole, facts: map[string]any{"byte_order_mark": nil, "hash": fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("\xEF\xBB\xBF"+smallNotebook)))}},
		{
			tool: "read_file", name: "a part", in: readFileArgs{Path: "a.ipynb", lineRange: lines(5, 2), LineNumbers: true},
			want: "     5\t[cell 2, code, run 3]\n     6\t1+1\n\n[lines 5-6 of 10; continue with offset=7]", facts: map[string]any{"next_offset": 7},
		},
		{tool: "read_file", name: "from the end", in: readFileArgs{Path: "a.ipynb", lineRange: lines(-3, 1)}, want: "2\n\n[lines 8-8 of 10; continue with offset=9]"},
		{tool: "read_file", name: "past the end", in: readFileArgs{Path: "a.ipynb", lineRange: lines(11, 0)}, err: "invalid_argument: offset is 11, but a.ipynb has 10 lines"},
		{tool: "read_file", name: "as JSON", in: readFileArgs{Path: "a.ipynb", Encoding: "utf-8"}, want: smallNotebook, facts: map[string]any{"cells": nil}},
		{tool: "read_file", name: "no cells", in: readFileArgs{Path: "none.ipynb"}, want: "\n[the file is empty]", facts: map[string]any{"cells": 0}},
		{tool: "read_file", name: "wrong types", in: readFileArgs{Path: "wrong.ipynb"}, want: `{"cells":[1]}` + "\n[shown as JSON and not by cells: cells[0] is a number, expected an object]"},
		{tool: "read_file", name: "empty", in: readFileArgs{Path: "empty.ipynb"}, want: "\n[the file is empty]\n[shown as JSON and not by cells: its JSON ends at byte 0, in the middle of a value]"},
		{tool: "read_file", name: "binary", in: readFileArgs{Path: "binary.ipynb"}, want: "Binary file: application/octet-stream, 2 bytes"},
		{tool: "read_files", name: "among others", in: readFilesArgs{Paths: []string{"a.ipynb"}}, want: "==> a.ipynb <==\n" + whole},
	})
}

// Hostile notebooks cost little, and one that is too large is shown as JSON.
func TestReadHostileNotebooks(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{
		"cells.ipynb": `{"cells":[` + strings.Repeat("{},", 400_000) + "{}]}", "deep.ipynb": `{"cells":` + strings.Repeat("[", 1<<20),
		"image.ipynb": `{"cells":[{"outputs":[{"data":{"image/png":"` + strings.Repeat("A", 4<<20) + `"}}]}]}`, "large.ipynb": smallNotebook + strings.Repeat("\n", 9000),
	})
	if err := os.Truncate(filepath.Join(dir, "large.ipynb"), notebook.MaxSize+1); err != nil {
		t.Fatal(err)
	}
	const budget = 16 << 10
	p := start(t, dir, budget)
	for name, want := range map[string]string{
		"cells.ipynb": "cells more, which are too large to show; the encoding utf-8 shows their JSON]",
		"deep.ipynb":  "[shown as JSON and not by cells: cells[0] is a list, expected an object]",
		"image.ipynb": fmt.Sprintf("[output: image/png, %d bytes]\n\n", 3<<20),
		"large.ipynb": fmt.Sprintf("[shown as JSON and not by cells: the notebook has %d bytes; the maximum for cells is %d]", notebook.MaxSize+1, notebook.MaxSize),
	} {
		if got := p.Call(t.Context(), "read_file", readFileArgs{Path: name}); got.Error != nil || len(got.Text()) > budget || !strings.HasSuffix(got.Text(), want) {
			t.Errorf("read_file of %s has %d bytes that end in %q, %v, want %q", name, len(got.Text()), got.Text()[max(0, len(got.Text())-200):], got.Error, want)
		}
	}
	many := p.Call(t.Context(), "read_files", readFilesArgs{Paths: []string{"image.ipynb", "image.ipynb", "image.ipynb", "image.ipynb", "image.ipynb"}})
	if many.Error != nil || strings.Count(many.Text(), "image/png") != 5 {
		t.Errorf("read_files of large notebooks = %q, %v", many.Text(), many.Error)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := workspaceOf(t, dir, 16*tool.KiB)
	if _, err := readFile(ctx, w, readFileArgs{Path: "cells.ipynb"}); err == nil {
		t.Error("a canceled call reads on")
	}
}
