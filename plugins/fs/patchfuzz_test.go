package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"

	"github.com/toolhost/toolhost/plugins/fs/internal/edit"
	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/sdk/patch"
	"github.com/toolhost/toolhost/sdk/tool"
)

// FuzzPatch takes two texts. The diff of them that the tools show, applied to
// the first, gives the second; the same changes in the other form give it too,
// or are refused because they may mean several places.
func FuzzPatch(f *testing.F) {
	f.Add("one\ntwo\nthree\n", "one\n2\nthree")
	f.Add("a\r\nb\r\nc", "a\r\nc\r\nd\r\n")
	f.Add("", "x\n")
	f.Add("x", "")
	f.Add("x\nx\nx\nx\n", "x\nx\ny\nx\nx\n")
	f.Add("--- a\n+++ b\n@@ -1 +1 @@\n", "-- a\n*** End Patch\n")
	f.Add("a\rb\n\r\n", "\r")
	f.Fuzz(func(t *testing.T, before, after string) {
		if before == after || len(before)+len(after) > 10_000 {
			return
		}
		d, ok := snapshot.Compare("a/f", "b/f", before, after)
		if !ok {
			t.Fatal("there is no diff")
		}
		if got, err := woven(t, before, d.Text); err != nil || got != after {
			t.Errorf("the diff of %q and %q gives %q, %v:\n%s", before, after, got, err, d.Text)
		}
		text, ok := asBeginPatch(t, before, after)
		if !ok {
			return
		}
		got, err := woven(t, before, text)
		var told *tool.Error
		if errors.As(err, &told) && strings.Contains(told.Message, "is ambiguous") {
			return
		}
		if want := edit.KeepLastEnd(before, after); err != nil || got != want && got != lastEndOf(before, after) {
			t.Errorf("the other form for %q and %q gives %q, %v:\n%s", before, after, got, err, text)
		}
	})
}

// lastEndOf gives after the last line end of before, or takes its own.
func lastEndOf(before, after string) string {
	if before == "" || strings.HasSuffix(before, "\n") {
		return edit.KeepLastEnd("\n", after)
	}
	return strings.TrimSuffix(strings.TrimSuffix(after, "\n"), "\r")
}

// woven applies a patch to a text.
func woven(t *testing.T, before, text string) (string, error) {
	t.Helper()
	files, err := patch.Parse(text)
	if err != nil {
		return "", err
	}
	if len(files) != 1 {
		t.Fatalf("%d files in\n%s", len(files), text)
	}
	after, _, err := edit.ApplyHunks(t.Context(), "f", before, &files[0])
	return after, err
}

// asBeginPatch writes the changes in the form without line numbers. It is not ok
// if that cannot tell them: it knows no difference in line ends alone.
func asBeginPatch(t *testing.T, before, after string) (text string, ok bool) {
	t.Helper()
	unified, err := udiff.ToUnifiedDiff("f", "f", before, udiff.Lines(before, after), 3)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("*** Begin Patch\n*** Update File: f\n")
	for _, hunk := range unified.Hunks {
		b.WriteString("@@\n")
		old := 0
		for _, l := range hunk.Lines {
			kind := map[udiff.OpKind]string{udiff.Equal: " ", udiff.Delete: "-", udiff.Insert: "+"}[l.Kind]
			if l.Kind != udiff.Insert {
				old++
			}
			if strings.ContainsAny(l.Content, "\r") || strings.TrimSpace(l.Content) == "" {
				return "", false
			}
			b.WriteString(kind + strings.TrimSuffix(l.Content, "\n") + "\n")
		}
		if old == 0 {
			b.WriteString("*** End of File\n")
		}
	}
	b.WriteString("*** End Patch\n")
	return b.String(), true
}

// FuzzApplyHunks applies any patch to any text.
func FuzzApplyHunks(f *testing.F) {
	f.Add("one\ntwo\n", "--- f\n+++ f\n@@ -1,2 +1 @@\n one\n-two\n")
	f.Add("one\ntwo", "*** Begin Patch\n*** Update File: f\n@@ one\n@@ two\n-two\n+2\n*** End of File\n*** End Patch\n")
	f.Add("x\nx\n", "--- f\n+++ f\n@@ -9 +9 @@\n-x\n\\ No newline\n+y\r\n")
	f.Fuzz(func(t *testing.T, before, text string) {
		files, err := patch.Parse(text)
		if err != nil {
			return
		}
		for i := range files {
			after, _, err := edit.ApplyHunks(t.Context(), "f", before, &files[i])
			var told *tool.Error
			if err != nil && !errors.As(err, &told) {
				t.Errorf("the error is %v", err)
			}
			if err == nil && len(after) > len(before)+2*len(text)+2 {
				t.Errorf("%d and %d bytes give %d", len(before), len(text), len(after))
			}
		}
	})
}
