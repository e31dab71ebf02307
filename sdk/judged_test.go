package sdk

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// TestJudgedParts checks for which parts an answer in advance counts: for the same part
// only, while no path leads through a symbolic link, and not for long.
func TestJudgedParts(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cat := tool.Execution{Argv: []string{"cat", "sub/a"}, Directory: dir}
	null := tool.Execution{File: "/dev/null", Directory: dir, Write: true}
	call := func(age time.Duration, unlinked ...string) *Call {
		return &Call{since: time.Now().Add(-age), data: tool.Call{
			Judged: []tool.Judged{{Execution: null}, {Execution: cat, Unlinked: unlinked}}, JudgedUntil: time.Now().Add(time.Hour),
		}}
	}
	path := filepath.Join(dir, "sub", "a")
	ended := call(0, dir, path)
	ended.data.JudgedUntil = time.Now()
	without := call(0, dir, path)
	without.data.JudgedUntil = time.Time{}
	for _, tt := range []struct {
		name string
		call *Call
		part tool.Execution
		want bool
	}{
		{"the part", call(0, dir, path), cat, true},
		{"a file", call(0), null, true},
		{"other words", call(0), tool.Execution{Argv: []string{"cat", "sub/b"}, Directory: dir}, false},
		{"fewer words", call(0), tool.Execution{Argv: []string{"cat"}, Directory: dir}, false},
		{"the path of a program", call(0), tool.Execution{Argv: []string{dir + "/cat", "sub/a"}, Directory: dir}, false},
		{"another directory", call(0), tool.Execution{Argv: cat.Argv, Directory: dir + "/sub"}, false},
		{"a variable", call(0), tool.Execution{Argv: cat.Argv, Environment: []string{"PATH=."}, Directory: dir}, false},
		{"reading instead of writing", call(0), tool.Execution{File: "/dev/null", Directory: dir}, false},
		{"a path that is not absolute", call(0, "sub/a"), cat, false},
		{"an answer that has ended", ended, cat, false},
		{"an answer without an end", without, cat, false},
		{"an old answer whose end the clock has not reached", call(judgedFor+time.Minute, dir, path), cat, false},
	} {
		if got := tt.call.judged(&tt.part); got != tt.want {
			t.Errorf("%s: judged in advance = %t, want %t", tt.name, got, tt.want)
		}
	}
	place := func(old, link string) {
		t.Helper()
		if err := os.Symlink(old, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	place("nothing", "other")
	if !call(0, path).judged(&cat) {
		t.Error("a link beside the path leads to a question")
	}
	place("real", "sub") // it leads nowhere, and then to a directory
	if call(0, path).judged(&cat) {
		t.Error("a path through a link leads to no question")
	}
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	if call(0, path).judged(&cat) {
		t.Error("a path through a link to a directory leads to no question")
	}
	place("/etc/passwd", "real/a")
	if call(0, filepath.Join(dir, "real", "a")).judged(&cat) {
		t.Error("a link leads to no question")
	}
}
