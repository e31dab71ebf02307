package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// overRelay makes this binary a server that passes each call on to the bare server, with the MCP SDK
// on both sides and nothing else.
const overRelay = "relay"

// relay serves the tool hello of the bare server, which it starts.
func relay(ctx context.Context) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "relay", Version: "1"}, nil)
	to, err := client.Connect(ctx, &mcp.CommandTransport{Command: bare(overStdio)}, nil)
	if err != nil {
		return err
	}
	defer to.Close()
	listed, err := to.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "relay", Version: "1"}, nil)
	for _, t := range listed.Tools {
		s.AddTool(t, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return to.CallTool(ctx, &mcp.CallToolParams{Name: r.Params.Name, Arguments: r.Params.Arguments})
		})
	}
	return s.Run(ctx, &mcp.StdioTransport{})
}

// BenchmarkBridge calls one small tool of a server of the MCP SDK: through the host and the plugin mcp,
// in whose sandbox the server runs; through a relay that does nothing else; and bare.
func BenchmarkBridge(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			c := call{tool: "hello", args: map[string]any{"name": "Ada", "greeting": "Hello"}}
			between, direct := startStdio(b, bare(overRelay), c), startStdio(b, bare(overStdio), c)
			c.tool = "peer_hello"
			host := startStdio(b, toolhost(bridgeConfig(b, "peer"), "mcp"), c)
			for b.Loop() {
				host.round(b, 256, callers)
				between.round(b, 256, callers)
				direct.round(b, 256, callers)
			}
			bareTook, relayTook, hostTook := median(direct.took), median(between.took), median(host.took)
			b.ReportMetric(micros(bareTook), "bare-µs/call")
			b.ReportMetric(micros(relayTook), "relay-µs/call")
			b.ReportMetric(micros(hostTook), "host-µs/call")
			b.ReportMetric(micros(relayTook-bareTook), "relay-adds-µs")
			b.ReportMetric(micros(hostTook-bareTook), "host-adds-µs")
			b.ReportMetric(bridgeMemory(b, host.pids), "bridge-MiB")
		})
	}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// bridgeConfig writes a configuration with the bare server as plugins of some names, and accepts their
// tools.
func bridgeConfig(b *testing.B, names ...string) string {
	b.Helper()
	self, err := filepath.EvalSymlinks(os.Args[0])
	if err != nil {
		b.Fatal(err)
	}
	var blocks strings.Builder
	for _, name := range names {
		fmt.Fprintf(&blocks, `
plugin %q {
  path   = "mcp"
  tier   = "side_effecting"
  claims = "trust"
  config { command = ["/usr/bin/env", %q, %q] }
  tool "%s_hello" { tier = "read_only" }
  sandbox {
    filesystem { exec = ["system", %q] }
  }
}
`, name, bareServer+"="+overStdio, self, name, self)
	}
	config := writeConfig(b, blocks.String())
	for _, name := range names {
		text := output(b, toolhost(config, "plugins", "diff", name, "--json"))
		var pending struct{ Digest string }
		if err := json.Unmarshal(text, &pending); err != nil {
			b.Fatalf("%v in %s", err, text)
		}
		output(b, toolhost(config, "plugins", "accept", name, "--digest", pending.Digest))
	}
	return config
}

// BenchmarkBridgeStart measures the time from the start of a host to its first list of tools: with ten
// bridged servers, which the lock and the manifests describe and nobody starts, and without any.
func BenchmarkBridgeStart(b *testing.B) {
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprintf("peer%d", i))
	}
	config, empty := bridgeConfig(b, names...), writeConfig(b, "")
	// A host reads programs that were built just before, to be sure of them.
	for began := time.Now(); time.Since(began) < 3*time.Second; {
		firstList(b, toolhost(config, "mcp"), len(names))
	}
	firstList(b, toolhost(empty, "mcp"), 0)
	nothingStarts(b, toolhost(config, "mcp"), len(names))
	var bridged, without []time.Duration
	for b.Loop() {
		bridged = append(bridged, firstList(b, toolhost(config, "mcp"), len(names)))
		without = append(without, firstList(b, toolhost(empty, "mcp"), 0))
	}
	b.ReportMetric(micros(median(bridged))/1e3, "bridged-ms")
	b.ReportMetric(micros(median(without))/1e3, "without-ms")
}

// nothingStarts checks that a host lists its tools without a start of the servers that have them.
func nothingStarts(b *testing.B, cmd *exec.Cmd, tools int) {
	b.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(b.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	list, err := session.ListTools(b.Context(), nil)
	if err != nil || len(list.Tools) < tools {
		b.Fatalf("tools/list = %d tools, %v; want %d at least", len(list.Tools), err, tools)
	}
	for _, pid := range descendants(b, cmd.Process.Pid) {
		if !isGuard(b, pid) {
			b.Fatalf("process %d was started for a list of tools", pid)
		}
	}
}

func output(b *testing.B, cmd *exec.Cmd) []byte {
	b.Helper()
	text, err := cmd.Output()
	if err != nil {
		b.Fatalf("%v: %v\n%s", cmd.Args, err, text)
	}
	return text
}

// bridgeMemory is the memory of the plugin's processes in MiB, without the server that it has started.
func bridgeMemory(b *testing.B, pids []int) (sum float64) {
	b.Helper()
	for _, pid := range pids {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			b.Fatal(err)
		}
		program, _, _ := strings.Cut(string(command), "\x00")
		if name := filepath.Base(program); name == "mcp" || name == "toolhost-reaper" { // the reaper of the server
			sum += pss(b, pid)
		}
	}
	return sum
}
