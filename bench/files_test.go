package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fileServer is the program that the fs plugin is compared with: the files server of the
// protocol's own authors, which `make peers` installs.
const fileServer = "../internal/tools/mcp/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"

// fsPlugin enables the fs plugin, in its sandbox, without a person.
const fsPlugin = `plugin "fs" {
  path   = "fs"
  tier   = "side_effecting"
  claims = "trust"
  approval {
    side_effecting = "allow"
  }
}
policy {
  actions_per_hour = "unlimited"
}
`

// makeTree fills a workspace: a file of 1 KB, an image of 1 MB, a file to edit, a directory of
// 1,000 entries, and 20,000 files in 200 directories. Searches look for ten of them.
func makeTree(b *testing.B, dir string) {
	b.Helper()
	line := strings.Repeat("0123456789abcde", 4) + "abc\n"
	errs := []error{
		os.WriteFile(filepath.Join(dir, "small"), []byte(strings.Repeat(line, 16)), 0o600),
		os.WriteFile(filepath.Join(dir, "large.png"), []byte("\x89PNG\r\n\x1a\n"+strings.Repeat(line, 16<<10-1)), 0o600),
		os.WriteFile(filepath.Join(dir, "edited"), []byte(strings.Repeat(line, 500)+"value: 0\n"+strings.Repeat(line, 500)), 0o600),
		os.Mkdir(filepath.Join(dir, "many"), 0o755),
	}
	for n := range 1000 {
		errs = append(errs, os.WriteFile(filepath.Join(dir, "many", fmt.Sprintf("entry-%04d.txt", n)), nil, 0o600))
	}
	for d := range 200 {
		sub := filepath.Join(dir, "tree", fmt.Sprintf("a%02d", d/10), fmt.Sprintf("b%02d", d%10))
		errs = append(errs, os.MkdirAll(sub, 0o755))
		for n := range 100 {
			name := fmt.Sprintf("file-%03d.txt", n)
			if n == 50 && d%20 == 0 {
				name = "needle.md"
			}
			errs = append(errs, os.WriteFile(filepath.Join(sub, name), nil, 0o600))
		}
	}
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkFiles makes the same calls of the host with its fs plugin and of the files
// server, over standard input and output.
func BenchmarkFiles(b *testing.B) {
	if _, err := os.Stat(fileServer); err != nil {
		b.Fatalf("the files server is not installed: %v; make peers does it", err)
	}
	for _, tt := range []struct {
		name  string
		calls int
		// ours and theirs are the calls; dir is the workspace.
		ours   func() call
		theirs func(dir string) call
	}{
		{
			"read/1KB", 100, func() call { return call{tool: "read_file", args: map[string]any{"path": "small"}} },
			func(dir string) call {
				return call{tool: "read_text_file", args: map[string]any{"path": filepath.Join(dir, "small")}}
			},
		},
		{
			"read an image/1MB", 10, func() call { return call{tool: "read_file", args: map[string]any{"path": "large.png"}} },
			func(dir string) call {
				return call{tool: "read_media_file", args: map[string]any{"path": filepath.Join(dir, "large.png")}}
			},
		},
		{
			"list/1000", 50, func() call {
				return call{tool: "list_directory", args: map[string]any{"path": "many", "limit": 1000}}
			},
			func(dir string) call {
				return call{tool: "list_directory", args: map[string]any{"path": filepath.Join(dir, "many")}}
			},
		},
		{ // with the same data as ours about each entry
			"list with sizes/1000", 50, func() call {
				return call{tool: "list_directory", args: map[string]any{"path": "many", "limit": 1000}}
			},
			func(dir string) call {
				return call{tool: "list_directory_with_sizes", args: map[string]any{"path": filepath.Join(dir, "many")}}
			},
		},
		{
			"find/20000", 5, func() call {
				return call{tool: "search_files", args: map[string]any{"path": "tree", "pattern": "needle*"}}
			},
			func(dir string) call {
				return call{tool: "search_files", args: map[string]any{"path": filepath.Join(dir, "tree"), "pattern": "**/needle*"}}
			},
		},
		{
			"edit", 50, func() call {
				return call{tool: "edit_file", next: func(n int) map[string]any {
					return map[string]any{"path": "edited", "old": value(n), "new": value(n + 1)}
				}}
			},
			func(dir string) call {
				return call{tool: "edit_file", next: func(n int) map[string]any {
					edit := map[string]any{"oldText": value(n), "newText": value(n + 1)}
					return map[string]any{"path": filepath.Join(dir, "edited"), "edits": []any{edit}}
				}}
			},
		},
	} {
		b.Run(tt.name, func(b *testing.B) {
			config := writeConfig(b, fsPlugin)
			ws, other := filepath.Join(filepath.Dir(config), "ws"), b.TempDir()
			makeTree(b, ws)
			makeTree(b, other)
			host := startStdio(b, toolhost(config, "mcp"), tt.ours())
			node := exec.Command("node", fileServer, other)
			peer := startStdio(b, node, tt.theirs(other))
			for b.Loop() {
				host.round(b, tt.calls, 1)
				peer.round(b, tt.calls, 1)
			}
			names := [2]string{"host", "node"}
			report(b, "latency", "µs/call", names, median(host.took), median(peer.took))
			report(b, "cpu", "cpu-µs/call", names, median(host.cpu), median(peer.cpu))
		})
	}
}

// value is the line that an edit changes.
func value(n int) string { return fmt.Sprintf("value: %d\n", n) }
