package bench

import (
	"fmt"
	"testing"
)

// transports are the ways to the tools.
var transports = []struct {
	name, bare string
	revision   string // "" over standard input and output: the newest
}{
	{"stdio", overStdio, ""},
	{"http-2026-07-28", overStateless, "2026-07-28"},
	{"http-2025-11-25", overSessions, "2025-11-25"},
}

// pair starts the host and the bare server for a transport.
func pair(b *testing.B, name string, c call) (host, other *peer) {
	b.Helper()
	config := writeConfig(b, pluginBlock("hello", ""), pluginBlock("probe", ""))
	for _, t := range transports {
		switch {
		case t.name != name:
		case t.revision == "":
			return startStdio(b, toolhost(config, "mcp"), c), startStdio(b, bare(t.bare), c)
		default:
			return startHTTP(b, toolhost(config, "serve", "--json"), "/mcp", t.revision, c),
				startHTTP(b, bare(t.bare), "", t.revision, c)
		}
	}
	b.Fatalf("there is no transport %q", name)
	return nil, nil
}

// BenchmarkEcho calls one small tool, through the host and its plugin process,
// and in a bare server of the same SDK.
func BenchmarkEcho(b *testing.B) {
	c := call{tool: "hello", args: map[string]any{"name": "Ada", "greeting": "Hello"}}
	for _, t := range transports {
		for _, callers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("%s/callers=%d", t.name, callers), func(b *testing.B) {
				host, other := pair(b, t.name, c)
				compare(b, host, other, 256, callers)
			})
		}
	}
}

// BenchmarkSandbox makes the same calls to a plugin in the strongest sandbox and to
// one in none.
func BenchmarkSandbox(b *testing.B) {
	c := call{tool: "hello", args: map[string]any{"name": "Ada", "greeting": "Hello"}}
	in := func(isolation string) *peer {
		config := writeConfig(b, pluginBlock("hello", fmt.Sprintf("  sandbox { isolation = %q }", isolation)))
		return startStdio(b, toolhost(config, "mcp"), c)
	}
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			strict, off := in("strict"), in("off")
			for b.Loop() {
				strict.round(b, 256, callers)
				off.round(b, 256, callers)
			}
			report(b, "latency", "µs/call", [2]string{"strict", "off"}, median(strict.took), median(off.took))
			report(b, "cpu", "cpu-µs/call", [2]string{"strict", "off"}, median(strict.cpu), median(off.cpu))
		})
	}
}

// BenchmarkLargeResult calls a tool that answers with an image of 1 MiB in the message,
// 768 KiB before its encoding. Texts over MCP are shorter.
func BenchmarkLargeResult(b *testing.B) {
	c := call{tool: "probe_image", args: map[string]any{"n": 3 << 18}}
	for _, t := range transports {
		b.Run(t.name, func(b *testing.B) {
			host, other := pair(b, t.name, c)
			compare(b, host, other, 16, 1)
		})
	}
}
