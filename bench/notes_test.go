package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// memoryServer is the program that the memory plugin is compared with: the memory
// server of the protocol's own authors, which `make peers` installs.
const memoryServer = "../internal/tools/mcp/node_modules/@modelcontextprotocol/server-memory/dist/index.js"

// memoryPlugin enables the memory plugin as config.hcl does.
const memoryPlugin = `plugin "memory" {
  tier   = "side_effecting"
  claims = "trust"
  approval {
    side_effecting = "allow"
  }
  sandbox {
    limits {
      memory    = "1GiB"
      file_size = "4GiB"
    }
    filesystem {
      workspace = "none"
    }
  }
}
policy {
  actions_per_hour = "unlimited"
}
`

// remembered makes notes of a vocabulary in which some words are frequent.
type remembered struct{ *rand.Rand }

func (r remembered) word() string {
	return fmt.Sprintf("%s%d", []string{"garden", "meeting", "report", "river", "music"}[r.IntN(5)], int(r.ExpFloat64()*3000))
}

func (r remembered) text(words int) string {
	all := make([]string, words)
	for i := range all {
		all[i] = r.word()
	}
	return strings.Join(all, " ")
}

// BenchmarkNotes compares the host's memory plugin with the memory server, over standard input
// and output: the same searches and saves on the same notes. The server finds only notes that
// contain the query literally, so it is asked for one word.
func BenchmarkNotes(b *testing.B) {
	if _, err := os.Stat(memoryServer); err != nil {
		b.Fatalf("the memory server is not installed: %v; make peers does it", err)
	}
	for _, notes := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint("search/", notes), func(b *testing.B) {
			searching := func(n int) string { return remembered{rand.New(rand.NewPCG(5, uint64(n)))}.word() }
			compareMemory(b, notes, max(1, 10_000/notes),
				func(n int) map[string]any { return map[string]any{"query": searching(n)} }, "memory_search",
				func(n int) map[string]any { return map[string]any{"query": searching(n)} }, "search_nodes")
		})
		b.Run(fmt.Sprint("save/", notes), func(b *testing.B) {
			saving := func(n int) string { return remembered{rand.New(rand.NewPCG(6, uint64(n)))}.text(15) }
			compareMemory(b, notes, max(1, 10_000/notes),
				func(n int) map[string]any { return map[string]any{"content": saving(n)} }, "memory_save",
				func(n int) map[string]any {
					return map[string]any{"entities": []any{map[string]any{"name": fmt.Sprint("new", n), "entityType": "note", "observations": []string{saving(n)}}}}
				}, "create_entities")
		})
	}
}

// compareMemory gives both the same notes, and lets them take turns.
func compareMemory(b *testing.B, notes, calls int, ours func(int) map[string]any, ourTool string, theirs func(int) map[string]any, theirTool string) {
	b.Helper()
	r := remembered{rand.New(rand.NewPCG(1, 2))}
	host := startStdio(b, toolhost(writeConfig(b, memoryPlugin), "mcp"), call{tool: "memory_stats"})
	file := filepath.Join(b.TempDir(), "memory.jsonl")
	var graph strings.Builder
	for done := 0; done < notes; {
		var lines strings.Builder
		for range min(5000, notes-done) {
			text := r.text(15)
			fmt.Fprintf(&lines, "{\"content\":%q}\n", text)
			entity, err := json.Marshal(map[string]any{"type": "entity", "name": fmt.Sprint("note", done), "entityType": "note", "observations": []string{text}})
			if err != nil {
				b.Fatal(err)
			}
			graph.Write(append(entity, '\n'))
			done++
		}
		host.made = call{tool: "memory_import", args: map[string]any{"data": lines.String()}}
		host.call(b)
	}
	if err := os.WriteFile(file, []byte(strings.TrimSuffix(graph.String(), "\n")), 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command("node", memoryServer)
	cmd.Env = append(os.Environ(), "MEMORY_FILE_PATH="+file)
	peer := startStdio(b, cmd, call{tool: theirTool, next: theirs})
	host.made = call{tool: ourTool, next: ours}
	host.call(b) // reads memory only
	for b.Loop() {
		host.round(b, calls, 1)
		peer.round(b, calls, 1)
	}
	names := [2]string{"host", "node"}
	report(b, "latency", "µs/call", names, median(host.took), median(peer.took))
	report(b, "cpu", "cpu-µs/call", names, median(host.cpu), median(peer.cpu))
}
