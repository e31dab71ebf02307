package dfa_test

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/dfa"
)

func compileWords(tb testing.TB, expr string) *dfa.Finder {
	tb.Helper()
	e, err := dfa.Compile(expr, true)
	if err != nil {
		tb.Fatal(err)
	}
	return e.Finder(nil)
}

// words is the same for package regexp: the first group is the match. The word characters are
// those in the texts of the tests.
func words(expr string) string {
	const word = `\pL\pM\p{Nd}\p{Nl}\p{Pc}\x{24B6}\x{200D}`
	return `(?:\A|[^` + word + `])(` + expr + `)(?:[^` + word + `]|\z)`
}

func checkWords(t *testing.T, re *regexp.Regexp, f *dfa.Finder, text []byte) {
	t.Helper()
	want := []int{-1, -1}
	if loc := re.FindSubmatchIndex(text); loc != nil {
		want = loc[2:4]
	}
	begin, end := f.Span(text, 0)
	if diff := cmp.Diff(want, []int{begin, end}); diff != "" {
		t.Fatalf("words %q in %q (-regexp +dfa):\n%s", re, text, diff)
	}
	if diff := cmp.Diff(wantLines(re, text), lines(f, text)); diff != "" {
		t.Fatalf("lines with the words %q in %q (-regexp +dfa):\n%s", re, text, diff)
	}
}

func TestWords(t *testing.T) {
	for _, tt := range []struct {
		expr, text string
		want       [][]int
	}{
		{"foo", "foo foo,foo_ xfoo foo", [][]int{{0, 3}, {4, 7}, {18, 21}}},
		{"foo|foobar", "foobar", [][]int{{0, 6}}},
		{"gr", "größe gr", [][]int{{8, 10}}},
		{"über", "über", [][]int{{0, 5}}},
		{"日", "日本 日", [][]int{{7, 10}}},
		{"e", "e\u0301 e", [][]int{{4, 5}}},
		{`\$HOME`, "$HOME x$HOME $$HOME", [][]int{{0, 5}, {14, 19}}},
		{"-foo", "a-foo --foo -foo", [][]int{{7, 11}, {12, 16}}},
		{"a*", "a b  ", [][]int{{0, 1}, {4, 4}, {5, 5}}},
		{"a+?", "aaa", [][]int{{0, 3}}},
		{"x|x-", "x-y x-", [][]int{{0, 1}, {4, 5}}},
		{"foo", "\xfffoo\xff", [][]int{{1, 4}}},
	} {
		if diff := cmp.Diff(tt.want, spans(compileWords(t, tt.expr), []byte(tt.text))); diff != "" {
			t.Errorf("words %q in %q (-want +got):\n%s", tt.expr, tt.text, diff)
		}
	}
}

func TestWordsAgreeWithRegexp(t *testing.T) {
	for seed := range uint64(500) {
		w := writer{rand.New(rand.NewPCG(seed, 8))}
		expr := w.expression(w.IntN(4))
		if w.IntN(2) == 0 {
			expr = w.pick("é", "-", `\$`, "a|", "日", ".") + expr
		}
		re, err := regexp.Compile(words(expr))
		if err != nil {
			continue
		}
		f := compileWords(t, expr)
		for range 10 {
			text := string(w.text())
			text += w.pick("", "é", "日", "-a", "$b ", "e\u0301", "\u24B6", "\u200Db", "²", "\n")
			checkWords(t, re, f, []byte(text+w.pick("", text)))
		}
	}
}

// If the beginning of a line is said to match, the line matches with any continuation, and a
// result that nothing can change is reported as final.
func TestBegins(t *testing.T) {
	for _, tt := range []struct {
		expr, line string
		want       bool
	}{
		{"abc", "abc", true},
		{"abc$", "abc", false},
		{"abc$", "abc\r", false},
		{`\Aabc\b`, "abc ", true},
		{`abc\b`, "abc", false},
		{`abc\B`, "abcd", true},
		{`abc\z`, "abc", false},
		{"a.*", "ab", true},
		{`x\r$`, "ax\r", false},
		{`x\r`, "ax\r", false},
		{`x\r`, "ax\rb", true},
		{"^", "", true},
		{"[^a]", "a\xc3", false},
		{"[^a]", "aé\xc3", true},
		{"", "", true},
	} {
		if got := compile(t, tt.expr).Begins([]byte(tt.line)); got != tt.want {
			t.Errorf("Begins(%q) of %q = %v, want %v", tt.line, tt.expr, got, tt.want)
		}
	}
	if compileWords(t, "abc").Begins([]byte("abc")) || !compileWords(t, "abc").Begins([]byte("abc ")) {
		t.Error("the end of a word is where the text ends, or is not where it does")
	}
	some := 0
	for seed := range uint64(6000) {
		w := writer{rand.New(rand.NewPCG(seed, 9))}
		expr := w.expression(w.IntN(4))
		re, err := regexp.Compile(expr)
		if err != nil {
			continue
		}
		f := compile(t, expr)
		line := strings.ReplaceAll(string(w.text()), "\n", "")
		if !f.Begins([]byte(line)) {
			continue
		}
		some++
		for _, rest := range []string{"", "a", " ", "é", "\xa9", "\ra", "ab1_", "$"} {
			if !re.MatchString(line+rest) || !slices.Equal(lines(f, []byte(line+rest+"\n")), []int{0}) {
				t.Fatalf("seed %d: %q is said to begin a match of %q, but followed by %q it is none", seed, line, expr, rest)
			}
		}
	}
	if some < 1000 {
		t.Errorf("%d lines begin one that matches, so the test shows little", some)
	}
}
