package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// TestDeepNesting: what makes the parser recurse is parsed up to the bound and
// refused beyond it.
func TestDeepNesting(t *testing.T) {
	for _, tt := range []struct {
		unit   string
		tokens int // in one unit
	}{
		{"!", 1},
		{"-", 1},
		{"(", 1},
		{"[", 1},
		{"{a=", 3},
		{`"${`, 2},
		{"a?1:", 4},
		{"1+", 2},
		{"a.", 2},
	} {
		for _, tokens := range []int{maxNesting - 100, 2 * maxNesting} {
			path := filepath.Join(t.TempDir(), "config.hcl")
			if err := os.WriteFile(path, []byte("x = "+strings.Repeat(tt.unit, tokens/tt.tokens)), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load(path, LoadOptions{LookupEnv: lookup(nil)})
			if err == nil {
				t.Fatalf("Load of %d tokens %q succeeded", tokens, tt.unit)
			}
			if got, want := strings.Contains(err.Error(), "Nested too deep"), tokens > maxNesting; got != want {
				t.Errorf("Load of %d tokens %q: refused as too deep is %t, want %t (%.100v)", tokens, tt.unit, got, want, err)
			}
		}
	}
}

// TestLongIsNotDeep: what stands beside each other may be longer than what is inside
// each other.
func TestLongIsNotDeep(t *testing.T) {
	const n = maxNesting
	for name, text := range map[string]string{
		"lines":            strings.Repeat("a = 1\n", n),
		"comments":         strings.Repeat("a = 1 # one\n", n),
		"blocks":           strings.Repeat("a \"b\" {\n c = [1]\n}\n", n),
		"blocks in a line": strings.Repeat("a \"b\" { c = (1) }\n", n),
		"a list":           "a = [" + strings.Repeat("\"b${1}\",\n", n) + "]\n",
		"arguments":        "a = f(" + strings.Repeat("1,", n) + "1)\n",
		"an object":        "a = {\n" + strings.Repeat("b = 1\n", n) + "}\n",
		"a text":           "a = <<END\n" + strings.Repeat("text\n", n) + "END\n",
	} {
		tokens, diags := hclsyntax.LexConfig([]byte(text), "x", hcl.InitialPos)
		if diags.HasErrors() || len(tokens) <= maxNesting {
			t.Fatalf("%s: %d tokens, %v", name, len(tokens), diags)
		}
		if at, found := tooDeep(tokens); found {
			t.Errorf("%s are too deep at %v", name, at)
		}
	}
}

// TestTooLong: the files together are bounded, and the place is that where the bound is.
func TestTooLong(t *testing.T) {
	tokens, _ := hclsyntax.LexConfig([]byte("a = 1\nb = 2\n"), "x", hcl.InitialPos)
	for _, tt := range []struct{ before, line int }{
		{0, 0},
		{maxTokens - len(tokens), 0},
		{maxTokens - 5, 2}, // a, =, 1, the end of the line and b fit
		{maxTokens + 100, 1},
	} {
		at, found := tooLong(tokens, tt.before)
		if found != (tt.line > 0) || at.Start.Line != tt.line {
			t.Errorf("with %d before: too long is %t at line %d, want line %d", tt.before, found, at.Start.Line, tt.line)
		}
	}
}
