package bench

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// copyNames are the plugins that [buildAll] makes of examples/hello, and their
// tools.
func copyNames() []string {
	var names []string
	for i := range copies {
		names = append(names, fmt.Sprintf("hello%d", i+1))
	}
	return names
}

// configOfCopies writes the configuration of a host with all of them; more is added to each
// block.
func configOfCopies(b *testing.B, more string) string {
	b.Helper()
	var blocks []string
	for _, name := range copyNames() {
		blocks = append(blocks, pluginBlock(name, more))
	}
	return writeConfig(b, blocks...)
}

// BenchmarkStart measures the time from the start of a program to the answer to
// the client's first tools/list. The host knows the manifests of its plugins
// from an earlier start.
func BenchmarkStart(b *testing.B) {
	config := configOfCopies(b, "")
	// A host reads programs that were built just before, to be sure of them.
	for began := time.Now(); time.Since(began) < 3*time.Second; {
		firstList(b, toolhost(config, "mcp"), copies)
	}
	var host, other []time.Duration
	for b.Loop() {
		host = append(host, firstList(b, toolhost(config, "mcp"), copies))
		other = append(other, firstList(b, bare(overStdio), 1))
	}
	report(b, "latency", "µs/start", [2]string{"host", "bare"}, median(host), median(other))
}

// firstList runs a program, lists its tools, which are so many at least, and
// returns how long that took.
func firstList(b *testing.B, cmd *exec.Cmd, tools int) time.Duration {
	b.Helper()
	began := time.Now()
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(b.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		b.Fatal(err)
	}
	list, err := session.ListTools(b.Context(), nil)
	took := time.Since(began)
	if err != nil || len(list.Tools) < tools {
		b.Fatalf("tools/list = %d tools, %v; want %d at least", len(list.Tools), err, tools)
	}
	session.Close()
	return took
}

// maxIdle bounds the wait for plugins that are stopped after a second.
const maxIdle = time.Minute

// BenchmarkMemory measures the memory of a host with five called plugins, of one plugin, and of
// the host after it has stopped its idle plugins. Shared memory is divided among its processes
// (PSS).
func BenchmarkMemory(b *testing.B) {
	var running, plugin, idle, guard []float64
	for b.Loop() {
		p := startHTTP(b, toolhost(configOfCopies(b, "  idle_timeout = \"1s\""), "serve", "--json"), "/mcp", "2026-07-28",
			call{tool: copyNames()[0], args: map[string]any{"name": "Ada"}})
		for _, name := range copyNames() {
			p.made.tool = name
			p.call(b)
		}
		started := descendants(b, p.pid)
		if len(started) != copies+1 {
			b.Fatalf("%d processes run, want %d plugins and the guard", len(started), copies)
		}
		running = append(running, pss(b, p.pid))
		for _, pid := range started {
			if isGuard(b, pid) {
				guard = append(guard, pss(b, pid))
			} else {
				plugin = append(plugin, pss(b, pid))
			}
		}
		deadline, look := time.Now().Add(maxIdle), time.Tick(50*time.Millisecond)
		for len(descendants(b, p.pid)) > 1 {
			if time.Now().After(deadline) {
				b.Fatal("the plugins are not stopped")
			}
			<-look
		}
		idle = append(idle, pss(b, p.pid))
		p.stop()
	}
	b.ReportMetric(middle(idle), "host-idle-MiB")
	b.ReportMetric(middle(running), "host-running-MiB")
	b.ReportMetric(middle(plugin), "plugin-MiB")
	b.ReportMetric(middle(guard), "guard-MiB")
}

// isGuard reports whether a process is the reaper, which ends plugins with their host.
func isGuard(b *testing.B, pid int) bool {
	b.Helper()
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		b.Fatal(err)
	}
	return strings.Contains(string(command), "__reaper")
}

func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// pss is the proportional set size of a process, in MiB.
func pss(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if size, ok := strings.CutPrefix(line, "Pss:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(size), " kB"), 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib / 1024
		}
	}
	b.Fatalf("process %d has no Pss", pid)
	return 0
}
