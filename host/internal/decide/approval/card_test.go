package approval_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestCard shows the call as Show does, below fewer facts.
func TestCard(t *testing.T) {
	r := shown()
	r.Context, r.Preview = "needed\x1b[2J", &tool.Preview{Content: []tool.Content{tool.Text("--- a\n+++ a\n-old\n+new\x1b[2J\n")}}
	card, whole := approval.Card(r), approval.Show(r)
	head := "Tool:     put of plugin p, privileged\nFor:      ada, by claude\nRule:     confirm, by tool \"put\" at config.hcl:12\n"
	_, call, _ := strings.Cut(whole.Text(80), "at config.hcl:12\n")
	if got := card.Text(80); got != head+call || call == "" || card.Complete != whole.Complete {
		t.Errorf("Card = %q, want %q, then %q", got, head, call)
	}
	colored := card.Colored(80)
	for _, want := range []string{"\n\x1b[31m  | -old\x1b[m\n", "\n\x1b[32m  | +new\\x1b[2J\x1b[m\n", "\n  > needed\\x1b[2J\n"} {
		if !strings.Contains(colored, want) {
			t.Errorf("Colored = %q, want %q", colored, want)
		}
	}
	if plain := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(colored, ""); plain != card.Text(80) {
		t.Errorf("Colored without colors = %q, want %q", plain, card.Text(80))
	}
}

// TestShowDiff marks what a diff changes, and makes every character visible.
func TestShowDiff(t *testing.T) {
	got := approval.ShowDiff("--- a\n+++ b\n@@ -1 +1 @@\n-old\x1b[2J\n+new\u200b\n same\n")
	want := approval.View{Complete: true, Lines: []approval.Line{
		{Kind: approval.Removed, Text: "--- a"},
		{Kind: approval.Added, Text: "+++ b"},
		{Kind: approval.Shown, Text: "@@ -1 +1 @@"},
		{Kind: approval.Removed, Text: `-old\x1b[2J`},
		{Kind: approval.Added, Text: `+new\u200b`},
		{Kind: approval.Shown, Text: " same"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ShowDiff (-want +got):\n%s", diff)
	}
}
