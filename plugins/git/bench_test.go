package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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

// BenchmarkMerge previews a merge that brings in changes to 5,000 of 10,000 files, by the
// tool and by git: the state of the files, the merge, and the counts of lines.
func BenchmarkMerge(b *testing.B) {
	w := newWorkspace(b, started{})
	var history bytes.Buffer
	for n, branch := range []string{"main", "side", "main"} {
		fmt.Fprintf(&history, "commit refs/heads/%s\nmark :%d\ncommitter Ada <ada@example.com> 1767323045 +0000\ndata 1\nx\n", branch, n+1)
		if n > 0 {
			history.WriteString("from :1\n")
		}
		for i := range []int{10_000, 5_000, 1}[n] {
			text := fmt.Sprintf("this is file %d\nwith a line of commit %d\n", i, n)
			if n == 2 {
				i = 9_999
			}
			fmt.Fprintf(&history, "M 644 inline dir%d/file-%d\ndata %d\n%s\n", i/100, i, len(text), text)
		}
	}
	w.git("", "init", "-q", "-b", "main", "r")
	w.git("r", "config", "user.name", "Ada")
	w.git("r", "config", "user.email", "ada@example.com")
	w.fastImport("r", history.String())
	w.git("r", "reset", "-q", "--hard")
	var cpu [2]time.Duration
	for b.Loop() {
		before := processorTime(b)
		p, err := w.plugin.Preview(b.Context(), "git_merge", args{"path": "r", "rev": "side"})
		if err != nil || !strings.Contains(p.Summary, "5000 files, +5000 -5000") {
			b.Fatalf("%s, %v", p.Summary, err)
		}
		between := processorTime(b)
		w.git("r", "--no-optional-locks", "status", "--porcelain")
		w.git("r", "diff", "--numstat", "HEAD", w.git("r", "merge-tree", "--write-tree", "HEAD", "side"))
		cpu[0], cpu[1] = cpu[0]+between-before, cpu[1]+processorTime(b)-between
	}
	for i, name := range []string{"tool", "git"} {
		b.ReportMetric(float64(cpu[i].Microseconds())/1000/float64(b.N), name+"-cpu-ms")
	}
	b.ReportMetric(cpu[0].Seconds()/cpu[1].Seconds(), "ratio")
}

// processorTime returns the processor time of this process and of those that it has
// started and that have ended.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if err := syscall.Getrusage(who, &used); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	return sum
}
