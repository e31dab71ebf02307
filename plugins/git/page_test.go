package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// parts reads a long result to its end, and returns how many parts it has.
func (w *workspace) parts(name string, in args, budget tool.ByteSize) (n int) {
	w.Helper()
	for n = 1; n < 1000; n++ {
		got := w.call(name, in)
		if got.Error != nil {
			w.Fatalf("part %d of %s(%v): %v", n, name, in, got.Error)
		}
		if len(got.Structured) > int(budget) {
			w.Errorf("part %d of %s(%v) has %d bytes, more than fit", n, name, in, len(got.Structured))
		}
		var page struct {
			Next string `json:"next_cursor"`
		}
		if err := json.Unmarshal(got.Structured, &page); err != nil {
			w.Fatal(err)
		}
		if page.Next == "" {
			return n
		}
		in["cursor"] = page.Next
	}
	w.Fatalf("%s(%v) has no end", name, in)
	return n
}

// Invalid UTF-8 takes more room in a result than its number of bytes.
func TestPartsOfOtherEncodings(t *testing.T) {
	w := newWorkspace(t, started{budget: 4 * tool.KiB})
	w.repo("r")
	w.write(map[string]string{"r/a.txt": strings.Repeat(strings.Repeat("\xfc", 60)+"\n", 200)})
	if n := w.parts("git_diff", args{"path": "r"}, 4*tool.KiB); n < 2 {
		t.Errorf("the diff has %d parts", n)
	}
	w.parts("git_blame", args{"path": "r/a.txt"}, 4*tool.KiB)
}

// A result can be continued however little room there is.
func TestPartsWithoutRoom(t *testing.T) {
	w := newWorkspace(t, started{budget: tool.KiB})
	w.repo("r")
	w.write(map[string]string{"r/a.txt": strings.Repeat("x", 300) + "\n"})
	w.parts("git_diff", args{"path": "r"}, 2*tool.KiB)
	w.parts("git_show", args{"path": "r/a.txt", "content": true}, 2*tool.KiB)
}

// A stash has its number, also if a list has no room for it.
func TestStashBeyondTheList(t *testing.T) {
	w := newWorkspace(t, started{budget: 2 * tool.KiB})
	w.repo("r")
	for i := range 20 {
		w.write(map[string]string{"r/a.txt": fmt.Sprintf("change %d\n", i)})
		w.git("r", "stash", "push", "-q", "-m", strings.Repeat("m", 60))
	}
	if got := structured[Stashes](w, "git_stash", args{"path": "r"}); len(got.Stashes) > 15 || got.Total != 20 {
		t.Fatalf("the list has %d of %d stashes", len(got.Stashes), got.Total)
	}
	w.must("git_stash", args{"path": "r", "action": "apply", "stash": 19})
	if got := w.read("r/a.txt"); got != "change 0\n" {
		t.Errorf("the file holds %q", got)
	}
	for _, stash := range []int{20, -1} {
		w.refused("git_stash", args{"path": "r", "action": "apply", "stash": stash}, tool.NotFound)
	}
}
