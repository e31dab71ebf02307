package main

import (
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

func TestTag(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.repo("r")
	head, first := w.git("r", "rev-parse", "HEAD"), w.git("r", "rev-parse", "HEAD~1")
	contains(t, w.must("git_tag", args{"path": "r"}), "No tags")
	contains(t, w.must("git_tag", args{"path": "r", "action": "create", "name": "v1", "rev": "HEAD~1"}), "Created the tag v1 at "+first[:10])
	in := args{"path": "r", "action": "create", "name": "v2", "message": "Second\n\n# kept"}
	p, text := w.preview("git_tag", in)
	contains(t, text, "Creates the tag v2 in r at "+head[:10]+": second", "Tagger: Ada <ada@example.com>", "    # kept")
	w.git("r", "branch", "before")
	w.git("r", "commit", "-q", "--allow-empty", "-m", "third")
	if got := w.approved("git_tag", in, p); got.Error == nil || got.Error.Code != tool.Conflict {
		t.Errorf("after the branch has moved: %v", got.Error)
	}
	w.git("r", "reset", "-q", "--hard", "before")
	if got := w.approved("git_tag", in, p); got.Error != nil {
		t.Fatal(got.Error)
	}
	if got := w.git("r", "for-each-ref", "--format=%(objecttype) %(*objectname) %(contents)", "refs/tags/v2"); got != "tag "+head+" Second\n\n# kept\n" {
		t.Errorf("the tag is %q", got)
	}
	if got := w.git("r", "rev-parse", "refs/tags/v1"); got != first {
		t.Errorf("v1 is at %s, want %s", got, first)
	}
	w.git("r", "tag", "below/v1")
	if got := structured[Tags](w, "git_tag", args{"path": "r", "name": "v2"}); got.Total != 1 || got.Tags[0].Commit != head || !got.Tags[0].Annotated || got.Tags[0].Subject != "Second" {
		t.Errorf("v2 is %+v", got)
	}
	page := structured[Tags](w, "git_tag", args{"path": "r", "limit": 1})
	if len(page.Tags) != 1 || page.Total != 3 || page.Tags[0].Name != "v2" {
		t.Errorf("the first page is %+v", page)
	}
	if got := structured[Tags](w, "git_tag", args{"path": "r", "cursor": page.NextCursor}); len(got.Tags) != 2 {
		t.Errorf("the second page is %+v", got)
	}
	w.git("r", "symbolic-ref", "refs/tags/link", "refs/heads/main")
	for _, tt := range []struct {
		in   args
		code tool.Code
		said string
	}{
		{args{"action": "create", "name": "v1"}, tool.Conflict, "already exists"},
		{args{"action": "create", "name": "x", "rev": "none"}, tool.NotFound, "no commit none"},
		{args{"action": "create", "name": "link"}, tool.Conflict, "is symbolic"},
		{args{"action": "delete", "name": "link"}, tool.Conflict, "is symbolic"},
		{args{"action": "delete", "name": "none"}, tool.NotFound, "no tag none"},
		{args{"action": "delete", "name": "v1", "rev": "HEAD"}, tool.InvalidArgument, "without the action create"},
		{args{"action": "create", "name": "-d"}, tool.InvalidArgument, "not a valid tag name"},
		{args{"action": "create", "name": "a..b"}, tool.InvalidArgument, "not a valid tag name"},
		{args{"action": "create"}, tool.InvalidArgument, "not a valid tag name"},
	} {
		tt.in["path"] = "r"
		contains(t, w.refused("git_tag", tt.in, tt.code), tt.said)
	}
	in = args{"path": "r", "action": "delete", "name": "v1"}
	p, text = w.preview("git_tag", in)
	contains(t, text, "Deletes the tag v1 ("+first[:10]+") in r")
	w.git("r", "update-ref", "refs/tags/v1", head)
	if got := w.approved("git_tag", in, p); got.Error == nil {
		t.Error("a tag that has moved is deleted")
	}
	contains(t, w.must("git_tag", in), "It was at "+head)
	w.must("git_tag", args{"path": "r", "action": "delete", "name": "v2"})
	if got := w.git("r", "for-each-ref", "--format=%(refname)", "refs/tags"); got != "refs/tags/below/v1\nrefs/tags/link" {
		t.Errorf("what is left: %s", got)
	}
}
