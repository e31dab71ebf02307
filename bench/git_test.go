package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// gitPlugin enables the git plugin, in its sandbox, with room for long results.
const gitPlugin = `plugin "git" {
  path   = "git"
  tier   = "read_only"
  claims = "trust"
  tool "git_log" {
    max_output = "4MiB"
  }
  sandbox {
    filesystem {
      exec    = ["/usr/bin/git", "/usr/lib/git-core", "/usr/libexec/git-core"]
      protect = ["hooks", "editor", "agents"]
    }
  }
}
`

// makeRepository makes a repository with 10,000 files, 1,000 commits and a file that
// has changed by 5 MB.
func makeRepository(b *testing.B, dir string) {
	b.Helper()
	var history bytes.Buffer
	blob := func(text string) { fmt.Fprintf(&history, "data %d\n%s\n", len(text), text) }
	for n := range 1000 {
		fmt.Fprintf(&history, "commit refs/heads/main\ncommitter Ada <ada@example.com> %d +0000\n", 1_700_000_000+n*60)
		blob(fmt.Sprintf("change number %d\n\nwith a line that says why", n))
		if n == 0 {
			for i := range 10_000 {
				fmt.Fprintf(&history, "M 100644 inline dir%d/file%d.txt\n", i/100, i)
				blob(fmt.Sprintf("this is file %d\n", i))
			}
			history.WriteString("M 100644 inline large\n")
			blob("")
		}
		history.WriteString("M 100644 inline counter\n")
		blob(strconv.Itoa(n))
	}
	run := func(input []byte, args ...string) {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin = dir, bytes.NewReader(input)
		if text, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("git %v: %v\n%s", args, err, text)
		}
	}
	run(nil, "init", "-q", "-b", "main")
	run(history.Bytes(), "fast-import", "--quiet")
	run(nil, "reset", "-q", "--hard")
	large := strings.Repeat(strings.Repeat("0123456789abcde", 4)+"abc\n", 5<<20/64)
	if err := os.WriteFile(filepath.Join(dir, "large"), []byte(large), 0o600); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkGit makes calls of the host with its git plugin, over standard input and
// output, and runs git itself for the same.
func BenchmarkGit(b *testing.B) {
	if _, err := exec.LookPath("git"); err != nil {
		b.Fatalf("git is not installed: %v", err)
	}
	for _, tt := range []struct {
		name  string
		calls int
		ours  call
		git   []string
	}{
		{"status/10000", 5, call{tool: "git_status"}, []string{"status", "--porcelain=v2", "-z", "--branch"}},
		{"log/1000", 5, call{tool: "git_log", args: map[string]any{"limit": 1000}}, []string{"log", "--max-count=1000"}},
		{"diff/5MB", 2, call{tool: "git_diff"}, []string{"diff"}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			config := writeConfig(b, gitPlugin)
			ws := filepath.Join(filepath.Dir(config), "ws")
			makeRepository(b, ws)
			if tt.ours.tool != "git_diff" {
				cmd := exec.Command("git", "checkout", "-q", "large")
				cmd.Dir = ws
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
			}
			host := startStdio(b, toolhost(config, "mcp"), tt.ours)
			peer := &searching{path: "git", args: append([]string{"-C", ws, "--no-optional-locks"}, tt.git...)}
			peer.round(b)
			peer.took, peer.cpu = nil, nil
			before, calls := host.used(b)+host.children(b), 0
			for b.Loop() {
				host.round(b, tt.calls, 1)
				calls += tt.calls
				for range tt.calls {
					peer.round(b)
				}
			}
			cpu := (host.used(b) + host.children(b) - before) / time.Duration(calls)
			names := [2]string{"host", "git"}
			report(b, "latency", "µs/call", names, median(host.took), median(peer.took))
			report(b, "cpu", "cpu-µs/call", names, cpu, mean(peer.cpu))
			b.ReportMetric(host.most(b), "process-MiB")
		})
	}
}

func mean(all []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(len(all))
}

// children is the processor time of processes that the peer has started and that have
// ended.
func (p *peer) children(b *testing.B) time.Duration {
	b.Helper()
	var ticks int64
	for _, pid := range p.pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(err, os.ErrNotExist) {
			continue // it has ended, and counts as its parent's
		}
		if err != nil {
			b.Fatal(err)
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		for _, field := range fields[13:15] { // cutime and cstime of proc(5)
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * time.Second / 100
}

// most is the maximum memory of any of the peer's processes, in MiB.
func (p *peer) most(b *testing.B) float64 {
	b.Helper()
	most := 0.0
	for _, pid := range p.pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			b.Fatal(err)
		}
		_, peak, _ := strings.Cut(string(text), "VmHWM:")
		if kib, err := strconv.ParseFloat(strings.Fields(peak)[0], 64); err == nil {
			most = max(most, kib/1024)
		}
	}
	return most
}
