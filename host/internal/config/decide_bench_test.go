package config

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

// BenchmarkDecide measures one decision over 1 KB of arguments with 200 rules: of
// which none is about the tool, or five with conditions are.
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

// BenchmarkDecideMany measures one decision with 10,000 rules with conditions: none is
// about the tool, or all are.
func BenchmarkDecideMany(b *testing.B) {
	for _, tt := range []struct{ name, tools, when string }{
		{"none is about the tool", "other_%d*", `args.path == "docs/%d"`},
		{"all are, of an argument", "write_*", `args.path == "docs/%d"`},
		{"all are, of paths", "write_*", `anytrue([for p in paths : under(p.rel, "docs/%d")])`},
	} {
		b.Run(tt.name, func(b *testing.B) {
			var blocks strings.Builder
			for i := range maxRules {
				tools := strings.ReplaceAll(tt.tools, "%d", strconv.Itoa(i))
				fmt.Fprintf(&blocks, "rule \"r%d\" {\n tools = [%q]\n verdict = \"confirm\"\n when = %s\n}\n", i, tools, fmt.Sprintf(tt.when, i))
			}
			rules := ruled(b, blocks.String())
			in := input(b, fmt.Sprintf(`{"path": "a/b.txt", "content": %q}`, strings.Repeat("x", 1000)))
			rules.Decide(in) // finds the rules about the tool
			b.ReportAllocs()
			for b.Loop() {
				if d := rules.Decide(in); d.Verdict != policy.Ask {
					b.Fatal(d)
				}
			}
		})
	}
}
