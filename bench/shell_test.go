package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// shellPlugin enables the shell plugin, in its sandbox, without a person.
const shellPlugin = `plugin "shell" {
  path   = "shell"
  tier   = "privileged"
  claims = "trust"
  approval {
    privileged = "allow"
  }
  sandbox {
    filesystem {
      exec = ["system"]
    }
  }
}
policy {
  actions_per_hour = "unlimited"
}
`

// bashTrue runs true as a program would without the plugin.
func bashTrue(b *testing.B) time.Duration {
	b.Helper()
	begun := time.Now()
	if err := exec.Command("bash", "--noprofile", "--norc", "-c", "true").Run(); err != nil {
		b.Fatal(err)
	}
	return time.Since(begun)
}

// startShell starts the shell plugin alone: its process and gRPC, without host and
// sandbox.
func startShell(b *testing.B) *sdktest.Plugin {
	b.Helper()
	return sdktest.StartBinary(b, filepath.Join(bin, "shell"), sdktest.Options{
		Settings: map[string]any{"unconfined": true}, Env: []string{"PATH=" + os.Getenv("PATH")},
	})
}

// BenchmarkShellTrue runs true: with bash alone, through the plugin's process, and
// through the host and the plugin in its sandbox, over MCP.
func BenchmarkShellTrue(b *testing.B) {
	plugin := startShell(b)
	c := call{tool: "shell_exec", args: map[string]any{"command": "true"}}
	host := startStdio(b, toolhost(writeConfig(b, shellPlugin), "mcp"), c)
	var bash, through []time.Duration
	for b.Loop() {
		for range 10 {
			bash = append(bash, bashTrue(b))
			begun := time.Now()
			if got := plugin.Call(b.Context(), c.tool, c.args); got.Error != nil {
				b.Fatal(got.Error)
			}
			through = append(through, time.Since(begun))
		}
		host.round(b, 10, 1)
	}
	report(b, "plugin", "µs/call", [2]string{"plugin", "bash"}, median(through), median(bash))
	report(b, "host", "µs/call", [2]string{"host", "bash"}, median(host.took), median(bash))
}

// treeLists are programs that a line may run unasked: by its tree, or as a text.
const treeLists = `
policy {
  commands {
    allow = ["echo", "test", "cat", "wc", "head", "sort", "uniq", "tr", "find"]
    text  = %q
  }
}
`

// startTree starts a host whose workspace has a file, and a directory of others.
func startTree(b *testing.B, text, line string, files int) *peer {
	b.Helper()
	config := writeConfig(b, shellPlugin+fmt.Sprintf(treeLists, text))
	workspace := filepath.Join(filepath.Dir(config), "ws")
	if err := os.Mkdir(filepath.Join(workspace, "d"), 0o755); err != nil {
		b.Fatal(err)
	}
	for i := range files {
		if err := os.WriteFile(filepath.Join(workspace, "d", fmt.Sprintf("f%d.txt", i)), []byte("b\na\n"), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(workspace, "a.txt"), []byte(strings.Repeat("b\na\n", 1000)), 0o644); err != nil {
		b.Fatal(err)
	}
	return startStdio(b, toolhost(config, "mcp"), call{tool: "shell_exec", args: map[string]any{"command": line}})
}

// BenchmarkShellTree runs allowed lines through the host: by their trees, with each part
// judged as it runs, and as texts that bash reads. A line begins when the one before has
// left no work: callers think between their calls.
func BenchmarkShellTree(b *testing.B) {
	for name, line := range map[string]string{
		"echo":  "echo hello",
		"pipe":  "cat a.txt | sort | uniq | tr a b | wc -l",
		"list":  "echo a; echo b; cat a.txt; head -n 1 a.txt; wc a.txt",
		"files": "find d -name 'f*' | sort | uniq | tr a b | wc -l",
	} {
		b.Run(name, func(b *testing.B) {
			files := 0
			if name == "files" {
				files = 10_000
			}
			tree, bash := startTree(b, "ask", line, files), startTree(b, "allow", line, files)
			for b.Loop() {
				for range 5 {
					for _, p := range []*peer{tree, bash} {
						p.round(b, 1, 1)
						p.settle(b)
					}
				}
			}
			report(b, "line", "µs/call", [2]string{"tree", "bash"}, median(tree.took), median(bash.took))
		})
	}
}

// BenchmarkShellJudge runs lines of 200 builtins that write nothing: the time of each is its
// judgment, from the question to the answer.
func BenchmarkShellJudge(b *testing.B) {
	const parts = 200
	p := startTree(b, "ask", "for i in {1.."+strconv.Itoa(parts)+"}; do test a; done", 0)
	for b.Loop() {
		p.round(b, 1, 1)
	}
	slices.Sort(p.took)
	b.ReportMetric(float64(median(p.took).Nanoseconds())/1e3/parts, "µs/part")
	b.ReportMetric(float64(p.took[len(p.took)*95/100].Nanoseconds())/1e3/parts, "p95-µs/part")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkShellStream streams 100 MB of a command's output to a caller.
func BenchmarkShellStream(b *testing.B) {
	const size = 100_000_000
	plugin := startShell(b)
	var took []time.Duration
	for b.Loop() {
		begun, got := time.Now(), 0
		result := plugin.Run(b.Context(), tool.Call{Tool: "shell_exec", Arguments: json.RawMessage(`{"command": "head -c 100000000 /dev/zero"}`)}, tool.Sink{
			Chunk: func(c tool.Chunk) { got += len(c.Data) },
		})
		if result.Error != nil || got != size {
			b.Fatalf("%d bytes, %v", got, result.Error)
		}
		took = append(took, time.Since(begun))
	}
	b.ReportMetric(size/1e6/median(took).Seconds(), "MB/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkShellTimeout gives commands that resist their end a second, and measures how much
// later the plugin answers.
func BenchmarkShellTimeout(b *testing.B) {
	plugin := startShell(b)
	commands := map[string]string{
		"sleep":  "sleep 1000",
		"deaf":   "trap '' TERM INT HUP; while :; do :; done",
		"flood":  "yes",
		"detach": "for i in {1..200}; do setsid sleep 1000 & done; wait",
	}
	late := make(map[string][]time.Duration)
	for b.Loop() {
		for name, command := range commands {
			begun := time.Now()
			got := plugin.Call(b.Context(), "shell_exec", map[string]any{"command": command, "timeout": 1})
			if got.Error == nil || got.Error.Code != tool.Timeout {
				b.Fatal(got.Error)
			}
			late[name] = append(late[name], time.Since(begun)-time.Second)
		}
	}
	for name, took := range late {
		b.ReportMetric(median(took).Seconds()*1e3, name+"-ms-late")
		b.ReportMetric(slices.Max(took).Seconds()*1e3, name+"-ms-latest")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkShellEndless makes a command write endlessly for 30 s, and measures the maximum
// growth of the plugin.
func BenchmarkShellEndless(b *testing.B) {
	for b.Loop() {
		plugin := startShell(b)
		peak := func() (kib float64) {
			got := plugin.Call(b.Context(), "shell_exec", map[string]any{"command": "grep VmHWM /proc/$(awk '/PPid/{print $2}' /proc/$PPID/status)/status"})
			if _, err := fmt.Sscanf(got.Text(), "VmHWM: %f kB", &kib); err != nil {
				b.Fatalf("%q, %v", got.Text(), got.Error)
			}
			return kib
		}
		before := peak()
		got := plugin.Call(b.Context(), "shell_exec", map[string]any{"command": "yes", "timeout": 30})
		var facts struct {
			Written float64 `json:"stdout_bytes"`
		}
		if err := json.Unmarshal(got.Structured, &facts); err != nil {
			b.Fatalf("%v, %v", got.Error, err)
		}
		b.ReportMetric(facts.Written/1e9, "GB-written")
		b.ReportMetric((peak()-before)/1024, "MiB-grown")
	}
	b.ReportMetric(0, "ns/op")
}
