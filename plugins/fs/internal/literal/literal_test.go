package literal_test

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/literal"
)

func required(tb testing.TB, expr string) literal.Required {
	tb.Helper()
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		tb.Fatal(err)
	}
	return literal.Of(parsed.Simplify(), false)
}

func TestOf(t *testing.T) {
	exact := func(all ...literal.Literal) literal.Required { return literal.Required{Literals: all, Exact: true} }
	some := func(all ...literal.Literal) literal.Required { return literal.Required{Literals: all} }
	text := func(s string) literal.Literal { return literal.Literal{Text: s} }
	fold := func(s string) literal.Literal { return literal.Literal{Text: s, Fold: true} }
	for _, tt := range []struct {
		expr string
		want literal.Required
	}{
		{"needle", exact(text("needle"))},
		{"(needle)", exact(text("needle"))},
		{"größe", exact(text("größe"))},
		{"foo|bar", exact(text("foo"), text("bar"))},
		{"foo(bar|baz)", exact(text("foobar"), text("foobaz"))},
		{"gr[ae]y", exact(text("gray"), text("grey"))},
		{"foobars?", exact(text("foobar"))},
		{`\bneedle\b`, some(text("needle"))},
		{`^needle$`, some(text("needle"))},
		{`\w+needle`, some(text("needle"))},
		{`needle\d+`, some(text("needle"))},
		{`if .* needle .* then`, some(text(" then"))},
		{`(?:needle)+`, some(text("needle"))},
		{`\w+(foo1|bar2)\w+`, some(text("foo1"), text("bar2"))},
		{`(?i)needle`, exact(fold("needle"))},
		{`(?i)needle_2`, exact(fold("needle_2"))},
		{`(?i)task`, some(fold("task"), text("ſ"), text("\u212a"))},
		{`(?i)größenwahn`, some(fold("enwahn"))},
		{`X(?i)buffer`, some(fold("buffer"))},
		{`(?i:buffer)\(\)`, exact(fold("buffer()"))},
		{`[A-Z]\w*`, literal.Required{}},
		{`(?:needle)*`, literal.Required{}},
		{`needle|\w+`, literal.Required{}},
		{`e`, exact(text("e"))},
		{`.`, literal.Required{}},
		{``, literal.Required{}},
		{"a\uFFFDb", literal.Required{}},
	} {
		t.Run(tt.expr, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, required(t, tt.expr)); diff != "" {
				t.Errorf("Of(%q) (-want +got):\n%s", tt.expr, diff)
			}
		})
	}
}

// check compares the required literals with all matches of package regexp, and the finder with a
// search at each byte.
func check(t *testing.T, expr string, text []byte) {
	t.Helper()
	re, err := regexp.Compile(expr)
	if err != nil {
		return
	}
	got := required(t, expr)
	if len(got.Literals) == 0 {
		return
	}
	stands := func(in []byte) bool {
		for _, l := range got.Literals {
			if at := bytes.Index(in, []byte(l.Text)); at >= 0 || l.Fold && strings.Contains(asciiLower(in), l.Text) {
				return true
			}
		}
		return false
	}
	for _, span := range re.FindAllIndex(text, -1) {
		if match := text[span[0]:span[1]]; !stands(match) {
			t.Fatalf("%q matches %q, in which none of %v is", expr, match, got.Literals)
		}
	}
	f := literal.NewFinder(got.Literals)
	f.Reset()
	for from := 0; ; {
		at := f.Next(text, from)
		if at < 0 {
			if stands(text[from:]) {
				t.Fatalf("Next(%q, %d) of %v = -1, but there is one", text, from, got.Literals)
			}
			return
		}
		if at > from && stands(text[from:at]) {
			t.Fatalf("Next(%q, %d) of %v = %d, but one is before", text, from, got.Literals, at)
		}
		if got.Exact && !re.Match(text) {
			t.Fatalf("%v are in %q, but %q does not match", got.Literals, text, expr)
		}
		from = at + 1
	}
}

// asciiLower is the text with the letters of ASCII in lower case.
func asciiLower(text []byte) string {
	return string(bytes.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r | 0x20
		}
		return r
	}, text))
}

func TestFindsEveryMatch(t *testing.T) {
	for seed := range uint64(30_000) {
		w := rand.New(rand.NewPCG(seed, 5))
		pick := func(from ...string) string { return from[w.IntN(len(from))] }
		var expr, text strings.Builder
		for range 1 + w.IntN(4) {
			expr.WriteString(pick("Qzj", "K~", "s#", "task", "Zé", "(?:QZ|~k)", "(?:J%|Q|)", "[QJ]", "(?:Qx)+", "x?", ".", `\b`, "(?i:Kq)", "(?i)", `\w*`, "^", "$"))
		}
		for range w.IntN(20) {
			text.WriteString(pick("Q", "z", "j", "K", "k", "~", "s", "ſ", "#", "\u212a", "task", "TASK", "é", "É", "Z", "x", "%", " ", "q"))
		}
		check(t, expr.String(), []byte(text.String()))
	}
}

// So are many literals whose bytes are all frequent.
func TestFindsEveryFrequentMatch(t *testing.T) {
	for seed := range uint64(10_000) {
		w := rand.New(rand.NewPCG(seed, 6))
		pick := func(from ...string) string { return from[w.IntN(len(from))] }
		expr := pick("(?i)", "", "") + "(?:eat|tea|" + pick("ate|one|ton|", "") + "noise|(?i:rain)|" + pick("senate", "tone", "is") + "|tin|sea|nose)"
		var text strings.Builder
		for range w.IntN(60) {
			text.WriteString(pick("e", "a", "t", "o", "n", "i", "s", "r", "E", "A", "T", "N", "ſ", "ea", "rai", "noi", " ", "\n"))
		}
		check(t, expr, []byte(text.String()))
	}
}

func FuzzFindsEveryMatch(f *testing.F) {
	f.Add("(?i)task|QZ~", []byte("ta\u017fK qz~"))
	f.Fuzz(func(t *testing.T, expr string, text []byte) {
		if len(expr) < 100 && len(text) < 1000 {
			check(t, expr, text)
		}
	})
}

// Texts in which the byte that is looked for is frequent take no longer than
// others would: this test ends.
func TestFrequentBytes(t *testing.T) {
	text := []byte(strings.Repeat("QQQQQQQQQQQQQQQx", 1<<18))
	for _, l := range []literal.Literal{{Text: "Qy"}, {Text: "QQQQQQQQQQQQQQQQQQQQQ"}, {Text: "qqqqqqqqqqqqqqqqqqqqq", Fold: true}} {
		f := literal.NewFinder([]literal.Literal{l})
		f.Reset()
		if at := f.Next(text, 0); at >= 0 {
			t.Errorf("Next of %v = %d, want -1", l, at)
		}
	}
}
