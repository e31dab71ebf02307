package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/command"
)

// caseLines are the commands of the table that package policy is checked with.
func caseLines(tb testing.TB) []string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("..", "policy", "testdata", "cases", "shell.json"))
	if err != nil {
		tb.Fatal(err)
	}
	var table struct{ Cases []struct{ Command string } }
	if err := json.Unmarshal(text, &table); err != nil {
		tb.Fatal(err)
	}
	lines := make([]string, 0, len(table.Cases))
	for _, tt := range table.Cases {
		lines = append(lines, tt.Command)
	}
	return lines
}

func options() command.Options {
	return command.Options{Workspace: "/ws", Assign: []string{"LC_ALL", "CI"}, WriteRedirects: []string{"/dev/null", "out.log"}}
}

// deep are lines that take a reader who is not careful long, or all memory.
//
//nolint:gochecknoglobals // a table
var deep = func() map[string]string {
	fill := func(text string) string { return strings.Repeat(text, command.MaxLength/len(text)) }
	half := command.MaxLength/2 - 16
	return map[string]string{
		"parentheses":    strings.Repeat("(", half) + "ls" + strings.Repeat(")", half),
		"arithmetic":     "echo $" + strings.Repeat("(", 500) + "1" + strings.Repeat(")", 500),
		"double":         strings.Repeat("((", 250) + "1" + strings.Repeat("))", 250),
		"substitutions":  fill("$("),
		"few of them":    strings.Repeat("echo $(", 500) + strings.Repeat(")", 500),
		"backquotes":     fill("`"),
		"escaped quotes": strings.Repeat("`", 400) + fill(`\`)[:10000],
		"braces":         strings.Repeat("{ ", 500) + "ls" + strings.Repeat("; }", 500),
		"expansions":     `echo "` + strings.Repeat(`${x:-`, 500) + strings.Repeat("}", 500) + `"`,
		"quotes in them": `echo ` + strings.Repeat(`"${x:-`, 500) + strings.Repeat(`}"`, 500),
		"and":            fill("a&&") + "a",
		"pipes":          fill("a|") + "a",
		"assignments":    fill("a=1;"),
		"names":          fill("sudo "),
		"runners":        "sudo " + fill("a ")[:60000],
		"candidates":     "sudo " + strings.Repeat("'sudo a b c' ", 4000),
		"wrappers":       fill("env "),
		"minus":          "echo $((" + fill("-")[:60000] + "1))",
		"ternary":        "echo $((" + fill("1?1:")[:60000] + "1))",
		"tests":          "[[ " + fill("! ")[:60000] + "a ]]",
		"and in tests":   "[[ " + fill("a && ")[:60000] + "a ]]",
		"elif":           "if a; then b; " + fill("elif a; then b; ")[:60000] + "fi",
		"documents":      strings.Repeat("<<E ", 200) + fill("\nE")[:60000],
		"times":          fill("time "),
		"times, broken":  fill("time\\\n"),
		"functions":      fill("f()\n"),
		"finds":          "find . " + fill("-exec a ; ")[:60000],
		"texts":          strings.Repeat("bash -c \"", 40) + strings.Repeat("\"", 40),
		"continuations":  fill("a \\\n"),
		"words":          fill("a "),
		"one word":       fill("a"),
		"brace words":    fill("{a,b}"),
		"globs":          fill("[a]*"),
		"cases":          "case a in " + fill("a) ls;; ")[:60000] + "esac",
		"redirections":   "ls" + strings.Repeat(" >a", 500),
		"elements":       "a=(" + fill("a ")[:60000] + ")",
	}
}()

// What is said of a line is bounded by the line.
func check(t *testing.T, text string) {
	t.Helper()
	line := command.Parse(text, options())
	if len(text) <= command.MaxTree {
		if tree, err := line.Tree(); err != nil || line.HasTree() != (len(tree) > 0) {
			t.Errorf("Parse(%.200q): has a tree: %t, but it has %d bytes, %v", text, line.HasTree(), len(tree), err)
		}
		command.ParseDeferred(text, options())
	}
	words := 0
	for _, s := range line.Segments {
		words += len(s.Argv)
		if s.Risk < command.Low || s.Risk > command.High {
			t.Errorf("Parse(%.200q): risk %v", text, s.Risk)
		}
	}
	// A word may be told by each command that runs the one it belongs to, or may be one.
	if most := 64 * (len(text) + 1); words > most {
		t.Errorf("Parse(%.200q): %d words, want at most %d", text, words, most)
	}
	if len(line.Segments) == 0 && len(line.Problems) == 0 {
		t.Errorf("Parse(%.200q) found nothing, and no problem", text)
	}
	if strings.ContainsAny(text, "\r\x00\v") && len(line.Problems) == 0 {
		t.Errorf("Parse(%.200q) has no problem with what cannot be seen", text)
	}
}

// Whatever a line nests, it is read in the time that its length takes: the test would
// end by its time-out, or for want of memory.
func TestParseIsBounded(t *testing.T) {
	for name, text := range deep {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			check(t, text)
			t.Log(time.Since(start))
		})
	}
	t.Run("10 MB", func(t *testing.T) {
		text := strings.Repeat("(ls; ", 2<<20)
		allocated := testing.AllocsPerRun(1, func() { check(t, text) })
		if line := command.Parse(text, options()); len(line.Segments) != 0 || line.Risk() != command.High || allocated > 100 {
			t.Errorf("it was read: %d segments, %v allocations", len(line.Segments), allocated)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range caseLines(f) {
		f.Add(text)
	}
	for _, text := range deep {
		f.Add(text[:min(len(text), 2000)])
	}
	f.Fuzz(check)
}

// BenchmarkParse reads the commands of the cases; p95 is that of single lines.
func BenchmarkParse(b *testing.B) {
	lines := caseLines(b)
	var all []time.Duration
	for b.Loop() {
		for _, text := range lines {
			start := time.Now()
			command.Parse(text, options())
			all = append(all, time.Since(start))
		}
	}
	slices.Sort(all)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(len(all)), "ns/line")
	b.ReportMetric(float64(all[len(all)*95/100].Nanoseconds()), "p95-ns/line")
}
