package search

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func compile(tb testing.TB, expr string, across bool) *Pattern {
	tb.Helper()
	p, err := Compile(expr, How{Across: across})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// found searches a text and returns a line of text for each that is visited.
func found(tb testing.TB, s *Searcher, text string) []string {
	tb.Helper()
	var all []string
	visit := func(l Line) bool {
		begin := -1
		if l.Matches {
			if begin = l.Begin; begin < 0 {
				begin = s.Begin(l.Text)
			}
		}
		all = append(all, fmt.Sprintf("%d %q %d", l.Number, l.Text, begin))
		return true
	}
	if result, err := s.Search(strings.NewReader(text), int64(len(text)), visit); err != nil || result != Searched {
		tb.Fatalf("Search: %v, %v", result, err)
	}
	return all
}

// lineSpans returns where each line begins and ends, without what ends it.
func lineSpans(text string) [][2]int {
	var all [][2]int
	for at := 0; at < len(text); {
		end := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i
		}
		all = append(all, [2]int{at, end})
		at = end + 1
	}
	return all
}

// want is the expected result of found, from package regexp, one line at a time.
func want(re *regexp.Regexp, text string, across bool, before, after int) []string {
	lines := lineSpans(text)
	begins := make([]int, len(lines))
	for i, l := range lines {
		begins[i] = -1
		if loc := re.FindStringIndex(strings.TrimSuffix(text[l[0]:l[1]], "\r")); loc != nil && !across {
			begins[i] = loc[0]
		}
	}
	if across {
		for _, loc := range re.FindAllStringIndex(text, -1) {
			for i, l := range lines {
				touches := loc[0] <= l[1] && (loc[1] > l[0] || loc[0] == l[0] && loc[1] == l[0])
				if touches && begins[i] < 0 {
					begins[i] = max(loc[0]-l[0], 0)
				}
			}
		}
	}
	var all []string
	for i, l := range lines {
		show := begins[i] >= 0
		for j := max(i-after, 0); j <= min(i+before, len(lines)-1); j++ {
			show = show || begins[j] >= 0
		}
		if show {
			all = append(all, fmt.Sprintf("%d %q %d", i+1, strings.TrimSuffix(text[l[0]:l[1]], "\r"), begins[i]))
		}
	}
	return all
}

// For any expression and text, and for any division of the text into parts, the lines are the
// ones that package regexp finds.
func TestAgreesWithRegexp(t *testing.T) {
	for seed := range uint64(6000) {
		w := rand.New(rand.NewPCG(seed, 7))
		pick := func(from ...string) string { return from[w.IntN(len(from))] }
		var expr, text strings.Builder
		for range 1 + w.IntN(4) {
			expr.WriteString(pick("foo", "QZ", "Z", "(?:QZ|foo)", "x*", ".", `\b`, "^", "$", `\s`, `[^x]`, "(?i)q", "(?i:foo)", `\n`, `\r`, "(?s:.)"))
		}
		for range w.IntN(60) {
			text.WriteString(pick("foo", "Q", "Z", "x", " ", "\n", "\n", "\r\n", "FOO", "é", "\r"))
		}
		across := w.IntN(3) == 0
		re, err := regexp.Compile(expr.String())
		if err != nil {
			continue
		}
		before, after := w.IntN(4), w.IntN(4)
		s := compile(t, expr.String(), across).Searcher(Options{Before: before, After: after, Numbers: true})
		s.buffer = make([]byte, []int{1, 7, 16, 1 << 10}[w.IntN(4)])
		if diff := cmp.Diff(want(re, text.String(), across, before, after), found(t, s, text.String())); diff != "" {
			t.Fatalf("seed %d: %q across %v, -%d +%d in %q, %d bytes at a time (-regexp +search):\n%s", seed, &expr, across, before, after, &text, len(s.buffer), diff)
		}
	}
}

// Literals that lead to many lines without a match are given up, with the same
// result.
func TestDense(t *testing.T) {
	text := strings.Repeat("Q~ x\n", 1000) + "Q~ 1\n"
	s := compile(t, `Q~ \d`, false).Searcher(Options{Numbers: true})
	if diff := cmp.Diff([]string{`1001 "Q~ 1" 0`}, found(t, s, text)); diff != "" || !s.dense() {
		t.Errorf("dense is %v, want true; found (-want +got):\n%s", s.dense(), diff)
	}
}

// source counts the reads.
type source struct {
	io.ReadSeeker
	reads int
}

func (s *source) Read(p []byte) (int, error) {
	s.reads++
	return s.ReadSeeker.Read(p)
}

// A small file is read at once, and one of unknown size to its end.
func TestReads(t *testing.T) {
	s := compile(t, "needle", false).Searcher(Options{})
	for size, want := range map[int64]int{0: 2, 7: 1, 100: 2, 3: 1} {
		f := &source{ReadSeeker: strings.NewReader("needle\n")}
		lines := 0
		if _, err := s.Search(f, size, func(Line) bool { lines++; return true }); err != nil || lines != 1 || f.reads != want {
			t.Errorf("a size of %d: %d lines, %d reads, %v, want 1 and %d", size, lines, f.reads, err, want)
		}
	}
}

func TestStopsWhenItIsEnough(t *testing.T) {
	s := compile(t, "a", false).Searcher(Options{Before: 1, After: 1})
	lines := 0
	f := &source{ReadSeeker: strings.NewReader(strings.Repeat("b\na\n", 1<<20))}
	if _, err := s.Search(f, 0, func(Line) bool { lines++; return lines < 3 }); err != nil || lines != 3 || f.reads > 1 {
		t.Errorf("%d lines, %d reads, %v, want 3 lines and one read", lines, f.reads, err)
	}
}

func TestBinary(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		result     Result
		lines      int
	}{
		{"text", "needle\n", Searched, 1},
		{"at the beginning", "needle\n\x00", Binary, 0},
		{"later", "needle\n" + strings.Repeat("x", HeadSize) + "\n\x00\nneedle\nneedle\n", Turned, 1},
		{"in a line", strings.Repeat("x\n", HeadSize) + "needle\x00\n", Turned, 0},
	} {
		s := compile(t, "needle", false).Searcher(Options{})
		lines := 0
		result, err := s.Search(strings.NewReader(tt.text), 0, func(Line) bool { lines++; return true })
		if result != tt.result || lines != tt.lines || err != nil {
			t.Errorf("%s: %v with %d lines, %v, want %v with %d", tt.name, result, lines, err, tt.result, tt.lines)
		}
	}
}

// latin1 reads each byte as the rune of its number.
func latin1(r io.Reader) io.Reader {
	text, err := io.ReadAll(r)
	if err != nil {
		return strings.NewReader("")
	}
	runes := make([]rune, len(text))
	for i, b := range text {
		runes[i] = rune(b)
	}
	return strings.NewReader(string(runes))
}

func TestCharset(t *testing.T) {
	charset := func(head []byte, _ bool) (Charset, bool) {
		switch {
		case bytes.HasPrefix(head, []byte("\xEF\xBB\xBF")):
			return Charset{Skip: 3}, true
		case isBinary(head):
			return Charset{}, false
		case bytes.IndexByte(head, 0xE9) >= 0:
			return Charset{Decode: latin1}, true
		default:
			return Charset{}, true
		}
	}
	long := strings.Repeat("x\n", bufferSize)
	for _, tt := range []struct {
		expr, text string
		strict     bool
		want       []string
	}{
		{"^a", "\xEF\xBB\xBFa\nb\n", false, []string{`1 "a" 0`}},
		{"a", "b\na\xE9\n", false, []string{`2 "aé" 0`}},
		{"é", "b\na\xE9\n", true, []string{`2 "aé" 1`}},
		{"a", long + "a\n", false, []string{fmt.Sprintf("%d %q 0", bufferSize+1, "a")}},
		{"a", "\xE9\n" + long + "a\xE9\n", false, []string{fmt.Sprintf("%d %q 0", bufferSize+2, "aé")}},
	} {
		for _, across := range []bool{false, true} {
			expr := tt.expr
			if across {
				expr = "(?m:" + expr + ")"
			}
			s := compile(t, expr, across).Searcher(Options{Numbers: true, Charset: charset, Strict: tt.strict})
			if diff := cmp.Diff(tt.want, found(t, s, tt.text)); diff != "" {
				t.Errorf("%q in %.20q, across lines %v (-want +got):\n%s", tt.expr, tt.text, across, diff)
			}
		}
	}
	s := compile(t, "a", false).Searcher(Options{Charset: charset})
	if result, err := s.Search(strings.NewReader("a\x00"), 0, nil); result != Binary || err != nil {
		t.Errorf("Search = %v, %v, want %v", result, err, Binary)
	}
}

// A file of 10 GB without a line end, and endless lines, take a bounded amount of memory.
func TestHugeFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sparse")
	if err := os.WriteFile(path, []byte("needle "+strings.Repeat("x", HeadSize)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 10<<30); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := compile(t, "needle", false).Searcher(Options{})
	if result, err := s.Search(f, 10<<30, func(Line) bool { t.Error("a line is visited"); return true }); result != Turned || err != nil {
		t.Errorf("a sparse file: %v, %v, want %v", result, err, Turned)
	}
	rewind(t, f)
	none := compile(t, "nowhere", false).Searcher(Options{})
	if result, err := none.Search(f, 10<<30, nil); result != Turned || err != nil {
		t.Errorf("a sparse file without a match: %v, %v, want %v", result, err, Turned)
	}
	rewind(t, f)
	across := compile(t, "needle", true).Searcher(Options{})
	if result, err := across.Search(f, 10<<30, nil); result != TooLarge || err != nil {
		t.Errorf("a sparse file, across lines: %v, %v, want %v", result, err, TooLarge)
	}
}

// Only the beginning of a line that is too long for memory is searched: an expression that needs
// its end does not match there, and the search reports the number of cut lines.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", MaxLine)
	for _, tt := range []struct {
		expr, text string
		lines, cut int
	}{
		{"needle", long[:5<<20] + "needle" + long[:5<<20] + "\n", 1, 0},
		{"needle", long + "needle\nneedle\n", 1, 1},
		{"needle", "needle" + long + "\n", 1, 0},
		{"needle", long + "\n" + long + long + "\n" + long + "x", 0, 3},
		{"x{3}", long + "x\n", 1, 0},
		{"x{3}$", long + "x\n", 0, 1},
		{"xxx$", "xxx\n" + long + "y", 1, 1}, // not at the cut
		{`xx\b`, long + "y\n", 0, 1},
		{`xx\B`, long[1:] + "\ny\n", 1, 0},
		{`xx\z`, long + "y\n", 0, 1},
		{`(?:x|\r)$`, long[1:] + "\ry\r\n", 0, 1},
		{"[^x]", long[1:] + "é\n", 0, 1}, // half of it is not a character
	} {
		s := compile(t, tt.expr, false).Searcher(Options{})
		lines := 0
		result, err := s.Search(strings.NewReader(tt.text), int64(len(tt.text)), func(Line) bool { lines++; return true })
		if result != Searched || err != nil || lines != tt.lines || s.Cut() != tt.cut {
			t.Errorf("%s in %d bytes: %v, %v, %d lines and %d cut, want %d and %d", tt.expr, len(tt.text), result, err, lines, s.Cut(), tt.lines, tt.cut)
		}
		if len(s.buffer) > bufferSize || s.large || len(s.pattern.large) > 0 {
			t.Errorf("%s: the searcher keeps %d bytes, want at most %d", tt.expr, len(s.buffer), bufferSize)
		}
	}
}

// Few searchers that need much memory have it at a time. The others wait, until their context
// ends.
func TestFewAreLarge(t *testing.T) {
	p := compile(t, "needle", false)
	for range maxLarge {
		p.large <- struct{}{}
	}
	done := make(chan struct{})
	close(done)
	text := strings.Repeat("x", 2*bufferSize) + "needle\n"
	for _, how := range []How{{}, {Across: true}} {
		p.how = how
		s := p.Searcher(Options{Done: done})
		if s.take() {
			t.Fatal("a searcher takes more than there is")
		}
		if result, err := s.Search(strings.NewReader(text), int64(len(text)), nil); result != Searched || err != nil {
			t.Errorf("%+v: Search = %v, %v, want that it ends", how, result, err)
		}
	}
}

// endless is a line without an end, which closes done after a while.
type endless struct {
	done  chan struct{}
	reads int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.reads++; e.reads == 20 {
		close(e.done)
	}
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func (*endless) Seek(int64, int) (int64, error) { return 0, nil }

// A search ends on request, even in a line that does not end.
func TestStopsInALine(t *testing.T) {
	f := &endless{done: make(chan struct{})}
	s := compile(t, "needle", false).Searcher(Options{Done: f.done})
	if result, err := s.Search(f, 0, nil); result != Searched || err != nil || f.reads > 21 {
		t.Errorf("Search = %v, %v after %d reads, want that it ends", result, err, f.reads)
	}
}

func rewind(t *testing.T, f *os.File) {
	t.Helper()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
}
