package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

// BenchmarkDecide measures one decision over 1 KB of arguments with 200 rules. None
// of them concerns the tool, or five with conditions do.
func BenchmarkDecide(b *testing.B) {
	for _, about := range []int{0, 5} {
		b.Run(fmt.Sprintf("%d of 200 rules", about), func(b *testing.B) {
			var blocks strings.Builder
			for i := range 200 {
				tools, when := "other_*", `args.path == "x"`
				if i < about {
					tools = "write_*"
					when = []string{
						`startswith(args.path, "secret")`, `strlen(args.content) > 100000`, `caller.user == "eve"`,
						`anytrue([for p in paths : under(p.rel, "private")])`, `try(args.mode == "0777", false)`,
					}[i]
				}
				fmt.Fprintf(&blocks, "rule \"r%d\" {\n tools = [%q]\n verdict = \"confirm\"\n when = %s\n}\n", i, tools, when)
			}
			rules := ruled(b, blocks.String())
			in := input(b, fmt.Sprintf(`{"path": "a/b.txt", "content": %q}`, strings.Repeat("x", 1000)))
			b.ReportAllocs()
			for b.Loop() {
				if d := rules.Decide(in); d.Verdict != policy.Ask {
					b.Fatal(d)
				}
			}
		})
	}
}
