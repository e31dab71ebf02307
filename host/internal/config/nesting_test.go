package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// TestDeepNesting checks that nested tokens are parsed up to the bound and refused
// beyond it.
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

// TestLongIsNotDeep checks that consecutive tokens do not count as nested.
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
