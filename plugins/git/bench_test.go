package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// BenchmarkLog lists 1,000 commits by the tool, and by git.
func BenchmarkLog(b *testing.B) {
	w := newWorkspace(b, started{budget: 4 * tool.MiB})
	w.git("", "init", "-q", "-b", "main", "r")
	var history bytes.Buffer
	for n := range 1000 {
		message := fmt.Sprintf("change number %d\n\nwith a line that says why", n)
		fmt.Fprintf(&history, "commit refs/heads/main\ncommitter Ada <ada@example.com> %d +0000\ndata %d\n%s\n", 1_700_000_000+n*60, len(message), message)
	}
	imported := exec.Command("git", "fast-import", "--quiet")
	imported.Dir, imported.Stdin = filepath.Join(w.dir, "r"), &history
	if out, err := imported.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	b.Run("tool", func(b *testing.B) {
		for b.Loop() {
			if got := w.plugin.Call(b.Context(), "git_log", args{"path": "r", "limit": 1000}); got.Error != nil || len(got.Structured) < 100_000 {
				b.Fatalf("%d bytes, %v", len(got.Structured), got.Error)
			}
		}
	})
	b.Run("git", func(b *testing.B) {
		for b.Loop() {
			w.git("r", "log", "--max-count=1000")
		}
	})
}
