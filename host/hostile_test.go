package main

import (
	"strings"
	"testing"
	"unicode"

	"github.com/toolhost/toolhost/host/internal/front/client"
)

// hostile is text that, printed unchanged, clears the screen, changes the writing direction,
// hides characters, and imitates the host.
const hostile = "a\x1b[2J\x1b]0;title\a\x9b31m\u202etxt.exe\u2066\u200b\u00ad\r\n" +
	"Approval: ap_0, open\nTool:     read_file\nTier:     read_only\n  ! all is well\n\u2028Arguments:\u0085\n  | {}\x00\x7f"

// TestHostileTextIsShown puts hostile text wherever an agent can, and checks what the approver
// sees. The control checks the text itself.
func TestHostileTextIsShown(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+writing))
	if found := invisible(hostile); len(found) < 10 {
		t.Fatalf("control: only %q is found in the text itself", found)
	}
	status, text, err := h.send("POST", "/v1/calls", h.token, asJSON(map[string]any{
		"tool":      "write_file",
		"arguments": map[string]any{"path": "a\x1b[2J\u202etxt\n\nTool: x.txt", "content": hostile},
		"context":   hostile,
	}), "Prefer", "respond-async")
	if o := outcomeOf(t, status, text, err); o.Status != client.Pending {
		t.Fatalf("the call = %s, want that it waits", text)
	}
	id := h.open(t, 1)[0].ID
	shown := h.ok(t, "approvals", "show", id)
	for what, text := range map[string]string{
		"show":        shown,
		"show --json": h.ok(t, "approvals", "show", id, "--json"),
		"list":        h.ok(t, "approvals", "list"),
		"list --json": h.ok(t, "approvals", "list", "--json"),
	} {
		if found := invisible(text); len(found) > 0 {
			t.Errorf("approvals %s prints %q:\n%s", what, found, text)
		}
	}
	for name, want := range map[string]int{
		"Approval:": 1, "Tool:": 1, "Tier:": 1, "Arguments:": 1, "  ! all": 0, "  | {}": 0, "  > Tool:     read_file": 1, "  | Tool:     read_file": 1,
	} {
		if n := linesWith(shown, name); n != want {
			t.Errorf("%d lines begin with %q, want %d, in\n%s", n, name, want, shown)
		}
	}
	if !strings.Contains(shown, "Tool:     write_file\n") || !strings.Contains(shown, `\x1b[2J`) || !strings.Contains(shown, `\u202e`) {
		t.Errorf("what is shown does not tell what is there:\n%s", shown)
	}
	if _, stderr, _ := h.cli("approvals", "show", "ap_\x1b[2J\u202e"); len(invisible(stderr)) > 0 {
		t.Errorf("an id that does not exist prints %q", stderr)
	}
}

// invisible returns the characters of a text that control a terminal or are invisible, except
// newlines.
func invisible(text string) (found []rune) {
	for _, r := range strings.ToValidUTF8(text, "\x9b") {
		if r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			found = append(found, r)
		}
	}
	return found
}

func linesWith(text, prefix string) (n int) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}
