package dfa_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/dfa"
)

func compile(tb testing.TB, expr string) *dfa.Finder {
	tb.Helper()
	e, err := dfa.Compile(expr, false)
	if err != nil {
		tb.Fatal(err)
	}
	return e.Finder(nil)
}

// spans is FindAllIndex.
func spans(f *dfa.Finder, text []byte) [][]int {
	var all [][]int
	f.Spans(text, func(begin, end int) bool {
		all = append(all, []int{begin, end})
		return true
	})
	return all
}

// lines returns the numbers of the lines that match.
func lines(f *dfa.Finder, text []byte) []int {
	var all []int
	number, at := 0, 0
	for at < len(text) {
		found := f.Line(text[at:])
		if found < 0 {
			break
		}
		start := at + bytes.LastIndexByte(text[at:at+found], '\n') + 1
		number += bytes.Count(text[at:start], []byte{'\n'})
		end := len(text)
		if i := bytes.IndexByte(text[at+found:], '\n'); i >= 0 {
			end = at + found + i
		}
		line := text[start:end]
		if bytes.IndexByte(line, '\r') >= 0 {
			if begin, _ := f.Span(bytes.TrimSuffix(line, []byte{'\r'}), 0); begin >= 0 {
				all = append(all, number)
			}
		} else {
			all = append(all, number)
		}
		at = end + 1
		number++
	}
	return all
}

// wantLines is the same, by package regexp.
func wantLines(re *regexp.Regexp, text []byte) []int {
	var all []int
	for i, line := range bytes.SplitAfter(text, []byte{'\n'}) {
		line, ended := bytes.CutSuffix(line, []byte{'\n'})
		if len(line) == 0 && !ended {
			continue
		}
		if re.Match(bytes.TrimSuffix(line, []byte{'\r'})) {
			all = append(all, i)
		}
	}
	return all
}

// check compares with package regexp.
func check(t *testing.T, expr string, text []byte) {
	t.Helper()
	re, err := regexp.Compile(expr)
	if err != nil {
		return
	}
	f := compile(t, expr)
	if diff := cmp.Diff(re.FindAllIndex(text, -1), spans(f, text)); diff != "" {
		t.Fatalf("spans of %q in %q (-regexp +dfa):\n%s", expr, text, diff)
	}
	if diff := cmp.Diff(wantLines(re, text), lines(f, text)); diff != "" {
		t.Fatalf("lines of %q in %q (-regexp +dfa):\n%s", expr, text, diff)
	}
}

func TestAgreesWithRegexp(t *testing.T) {
	texts := []string{
		"", "\n", "\n\n", "a", "abc", "ab\nc\n", "a\r\nb\r\n", "a\rb\r\r\n\r\n", "foo bar\nfoo_bar foo-bar\n", "aaaaaaaaab",
		"é\xff\xc3 ſK K\n\u2028\xe2\x82\n\xe2\x82\xac", "x = 1\n\ty := \"two\"\n", strings.Repeat("ab ", 40) + "\n" + strings.Repeat("é", 30),
	}
	for _, expr := range []string{
		"", "a", "abc|ab|a", "a|ab|abc", "a*", "a*?", "a+?b", "(a|b)*c", `^`, `$`, `^$`, `\A`, `\z`, `(?m)^`, `(?m)$`, `(?m)^$`, `(?m)^a`, `b$`,
		`\b`, `\B`, `\bfoo\b`, `\Bo`, `\b(?:foo|bar)\b`, `foo.bar`, `(?s).+`, `.+`, `.`, `[^a]`, `[^a]$`, `\s`, `\s+$`, `\S+`, `\w+`, `\W`, `\r`, `\r$`,
		`(?i)k`, `(?i)s`, `(?i)É`, `\pL+`, `\PL`, `[^\x00-\x{10FFFF}]`, `\x{FFFD}`, `[é€]`, `a{3}`, `a{2,5}?b`, `(?:a{1,3}){2}`, `(a|ab)(c|bcd)?`,
		`\n`, `b\nc`, `(?s)a.*c`, `x*$`, `a|$`, `\b|b`, `(?m)\b$`, `(?U)a+`, `[[:^ascii:]]+`, `(|a)+`, `(a*)*`, `(a|b|)+c`, `^a|b`, `(?:^|\W)a`,
	} {
		for _, text := range texts {
			check(t, expr, []byte(text))
		}
	}
}

// writer writes expressions and texts.
type writer struct{ *rand.Rand }

func (w writer) pick(from ...string) string { return from[w.IntN(len(from))] }

func (w writer) expression(depth int) string {
	if depth == 0 {
		return w.pick("a", "b", "ab", "K", "s", "é", ".", `\w`, `\W`, `\s`, `\d`, "[a-c]", "[^a]", `\pL`, `\b`, `\B`, "^", "$", `\A`, `\z`, "", "1", `\r`, `\n`, "_")
	}
	inner := w.expression(depth - 1)
	switch w.IntN(9) {
	case 0:
		return "(?:" + inner + "|" + w.expression(depth-1) + ")"
	case 1:
		return "(?:" + inner + ")" + w.pick("*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{2,}?", "{0,2}")
	case 2:
		return "(" + w.pick("?i", "?s", "?m", "?U", "?im") + ":" + inner + ")"
	case 3:
		return "(" + inner + ")"
	default:
		return inner + w.expression(depth-1)
	}
}

func (w writer) text() []byte {
	var text []byte
	for range w.IntN(40) {
		text = append(text, w.pick("a", "b", "ab", "c", "k", "K", "\u212a", "S", "ſ", "é", "\xff", "\xc3", "\xe2\x82", "1", "_", " ", "\n", "\n", "\r\n", "\r")...)
	}
	return text
}

func TestAgreesWithRegexpOnAnything(t *testing.T) {
	for seed := range uint64(6000) {
		w := writer{rand.New(rand.NewPCG(seed, 2))}
		expr := w.expression(w.IntN(5))
		for range 3 {
			check(t, expr, w.text())
		}
	}
}

func FuzzAgreesWithRegexp(f *testing.F) {
	for _, expr := range []string{`\b(?:foo|bar)\b`, `(?i)k+?$`, `(?m)^a|b$`, `[^é]`} {
		f.Add(expr, []byte("foo k\r\nb\xffé\n"))
	}
	f.Fuzz(func(t *testing.T, expr string, text []byte) {
		if len(expr) < 200 && len(text) < 2000 {
			check(t, expr, text)
		}
	})
}

// Expressions with more states than the table holds are followed all the same,
// with the same result and in linear time.
func TestManyStates(t *testing.T) {
	w := writer{rand.New(rand.NewPCG(1, 3))}
	text := make([]byte, 100<<10)
	for i := range text {
		text[i] = "ab"[w.IntN(2)]
		if w.IntN(2000) == 0 {
			text[i] = '\n'
		}
	}
	for _, expr := range []string{`[ab]*a[ab]{20}c`, `(?:a[ab]{18}|b[ab]{19})\n`, `a[ab]{17}$`, `(?:aa|bb|ab|ba)*a[ab]{16}\b`} {
		t.Run(expr, func(t *testing.T) { check(t, expr, text) })
	}
	check(t, `[ab]*a[ab]{300}c`, text[:20<<10])
}

// Expressions that take exponential time where each way is tried for itself:
// this test ends.
func TestBombs(t *testing.T) {
	text := []byte(strings.Repeat("a", 30<<10) + "\n")
	for _, expr := range []string{`(a*)*b`, `(a|aa)+$b`, `(a|a|a|a)*b`, `(.*)(.*)(.*)(.*)(.*)[^a\n]`, `(x+x+)+y`, `(?:a?){300}a{300}b`} {
		f := compile(t, expr)
		if got := f.Line(text); got >= 0 {
			t.Errorf("Line of %q = %d, want -1", expr, got)
		}
		if begin, _ := f.Span(text, 0); begin >= 0 {
			t.Errorf("Span of %q begins at %d, want -1", expr, begin)
		}
	}
}

func TestStops(t *testing.T) {
	done := make(chan struct{})
	close(done)
	e, err := dfa.Compile(`[ab]*a[ab]{20}c`, false)
	if err != nil {
		t.Fatal(err)
	}
	w := writer{rand.New(rand.NewPCG(1, 4))}
	text := make([]byte, 4<<20)
	for i := range text {
		text[i] = "ab"[w.IntN(2)]
	}
	copy(text[len(text)-26:], "aaaaaaaaaaaaaaaaaaaaaaaaac")
	if got := e.Finder(done).Line(text); got >= 0 {
		t.Errorf("Line = %d after the search was to stop, want -1", got)
	}
}

func TestMistakes(t *testing.T) {
	if _, err := dfa.Compile("a(", false); err == nil || !strings.Contains(err.Error(), "missing closing )") {
		t.Errorf("Compile = %v, want what package regexp says", err)
	}
}

func BenchmarkLine(b *testing.B) {
	text := []byte(strings.Repeat("func (s *Server) handle(w io.Writer, request *Request) error { return s.next(w, request) }\n\t// Nothing here, é.\n", 2000))
	for _, expr := range []string{`[A-Z]{4}\d+`, `\b(zebra|lion)\b`, `(?i)zebra`, `\w+\s+\w+!`, `[^x]{80}Q`} {
		b.Run(fmt.Sprintf("%q", expr), func(b *testing.B) {
			f := compile(b, expr)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if f.Line(text) >= 0 {
					b.Fatal("found")
				}
			}
		})
	}
}
