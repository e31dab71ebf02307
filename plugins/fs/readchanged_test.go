package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/encoding"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/tool"
)

// observed is an encoding that changes nothing, and reports when a text is about to be read.
type observed struct {
	encoding.Encoding
	reading func()
}

func (o observed) NewDecoder() *encoding.Decoder {
	o.reading()
	return encoding.Nop.NewDecoder()
}

// One answer describes the file as it was when opened, or says that it does not, whatever
// another process writes meanwhile.
func TestReadFileThatChanges(t *testing.T) {
	const lines = 1000
	before := numbered(lines)
	grow := func(path string) error {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString(strings.Repeat("more\n", 20_000))
		return err
	}
	shrink := func(path string) error { return os.Truncate(path, int64(len(numbered(lines/2)))) }
	rewrite := func(path string) error {
		return os.WriteFile(path, []byte(strings.ReplaceAll(before, "line 1", "line\n1")), 0o644)
	}
	from := func(offset int) textfile.Window { return textfile.Window{Offset: offset, Limit: 3, Budget: 1000} }
	for _, tt := range []struct {
		name   string
		change func(path string) error
		at     int // before which reading, from 1; 0 is before all
		view   textfile.Window
		want   string
		err    string
		facts  map[string]any
	}{
		{
			name: "grown", change: grow, view: from(-3), want: "line 998\nline 999\nline 1000\n",
			facts: map[string]any{"total_bytes": len(before), "total_lines": lines, "hash": fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(before)))},
		},
		{
			name: "grown between two readings", change: grow, at: 2, view: from(-3), want: "line 998\nline 999\nline 1000\n",
			facts: map[string]any{"total_bytes": len(before), "total_lines": lines},
		},
		{
			name: "shrunk", change: shrink, view: from(499),
			want:  "line 499\nline 500\n\n[the file became shorter while it was read: this is the rest of it]",
			facts: map[string]any{"total_bytes": len(numbered(lines / 2)), "total_lines": lines / 2, "hash": nil},
		},
		{name: "shrunk, from the end", change: shrink, view: from(-3), err: "conflict: a.txt was changed while it was read"},
		{name: "shrunk between two readings", change: shrink, at: 2, view: from(-3), err: "conflict: a.txt was changed while it was read"},
		{name: "rewritten between two readings", change: rewrite, at: 2, view: from(-3), err: "conflict: a.txt was changed while it was read"},
		{name: "shrunk to before the window", change: shrink, view: from(900), err: "invalid_argument: offset is 900, but a.txt has 500 lines"},
		{name: "gone", change: func(path string) error { return os.Truncate(path, 0) }, view: from(1), want: "\n[the file is empty]\n[the file became shorter while it was read: this is the rest of it]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filetest.Tree(t, map[string]string{"a.txt": before})
			path := filepath.Join(dir, "a.txt")
			f, err := workspaceOf(t, dir, 4*tool.KiB).openFile("a.txt")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			change := func() {
				if err := tt.change(path); err != nil {
					t.Fatal(err)
				}
			}
			readings := 0
			f.charset = textfile.Charset{Name: "utf-8", Unit: 1, Decoder: observed{reading: func() {
				if readings++; readings == tt.at {
					change()
				}
			}}}
			if tt.at == 0 {
				change()
			}
			got, err := f.read(t.Context(), tt.view)
			if told := tool.AsError(err); tt.err != "" && (told == nil || told.Error() != tt.err) || tt.err == "" && err != nil {
				t.Fatalf("read = %q, %v, want the error %q", got.Text(), err, tt.err)
			}
			if got.Text() != tt.want && tt.err == "" {
				t.Errorf("read = %q, want %q", got.Text(), tt.want)
			}
			for fact, want := range tt.facts {
				if asJSON(t, got.Metadata[fact]) != asJSON(t, want) {
					t.Errorf("%s is %v, want %v", fact, got.Metadata[fact], want)
				}
			}
		})
	}
}

// So it is with the end of a file that is too large to read.
func TestReadFileThatShrinks(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"a.log": ""})
	path := filepath.Join(dir, "a.log")
	if err := os.Truncate(path, 2*snapshot.MaxWhole); err != nil {
		t.Fatal(err)
	}
	f, err := workspaceOf(t, dir, 4*tool.KiB).openFile("a.log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.charset = textfile.Charset{Name: "utf-8", Unit: 1}
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	_, err = f.read(t.Context(), textfile.Window{Offset: -1, Limit: 1, Budget: 100})
	if told := tool.AsError(err); told == nil || told.Code != tool.Conflict || !told.Retryable {
		t.Errorf("read = %v, want a conflict", err)
	}
}
