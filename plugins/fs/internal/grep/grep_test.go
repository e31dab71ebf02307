package grep

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
	"github.com/toolhost/toolhost/plugins/fs/internal/search"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Lines are kept only as far as the result can show them, and not at all if they are only
// counted.
func TestSearchContentKeepsLittle(t *testing.T) {
	line := func(n int) search.Line {
		return search.Line{Number: n, Text: []byte(strings.Repeat("x", 100)), Matches: n%60 == 0}
	}
	shown := (&report{mode: "content", budget: 1000, countTo: 11_000}).hits(Query{Before: 50, After: 50, MaxResults: 10_000}, false, 0)
	for n := 1; shown.take(line(n), nil); n++ {
		if n > 60*11_001 {
			t.Fatal("lines are taken without end")
		}
	}
	if shown.total != 11_001 || !shown.more || len(shown.lines) > 100 {
		t.Errorf("%d lines are kept, more = %v, want few and more", len(shown.lines), shown.more)
	}
	counted := (&report{mode: "count"}).hits(Query{}, false, 0)
	for range 1000 {
		counted.take(search.Line{Matches: true}, nil)
	}
	if counted.matches != 1000 || len(counted.lines) > 0 {
		t.Errorf("%d matches are counted and %d lines kept, want 1000 and none", counted.matches, len(counted.lines))
	}
}

// Among many files only the first ones are kept, in whatever order they are found.
func TestFoundKeepsTheFirst(t *testing.T) {
	for seed := range uint64(50) {
		w := rand.New(rand.NewPCG(seed, 1))
		f := &found{content: true, most: 20, space: 10_000}
		var left []string // the files to find
		for i := range 2000 {
			left = append(left, fmt.Sprintf("d%d/%04d", i%7, i))
		}
		w.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		most := 0
		for _, name := range left {
			f.add(fileHits{name, name, &hits{matches: 2}})
			most = max(most, len(f.kept))
		}
		slices.SortFunc(left, filetree.Compare)
		f.sort()
		for i := range 11 {
			if f.kept[i].path != left[i] {
				t.Fatalf("seed %d: file %d is %s, want %s", seed, i, f.kept[i].path, left[i])
			}
		}
		if most > 40 {
			t.Errorf("seed %d: %d files were kept, want few", seed, most)
		}
	}
}

// The report does not depend on the order of the findings.
func TestUnsearchedIsInOrder(t *testing.T) {
	leftOut := map[string]string{"": "50 sensitive files left out", "d0/03": "2 sensitive files left out", "d1": "at least 4 sensitive files left out"}
	for until, want := range map[string]string{
		"": "[d0/00]\n[d0/03]\n[d0/06]\n[and 47 more like it; search below a narrower path]\n[not searched, since it cannot be read: d0/00, d0/03, d0/06 and 47 more]\n" +
			"[not searched: everything beyond the first 16 MiB of 1225 lines in d0/00, d0/03, d0/06 and 47 more; read_file with column reads it]",
		"d0/03": "[d0/00]\n[d0/03]\n[not searched, since it cannot be read: d0/00, d0/03]\n" +
			"[not searched: everything beyond the first 16 MiB of 3 lines in d0/00, d0/03; read_file with column reads it]",
		"d1": "[d0/00]\n[d0/03]\n[d0/06]\n[and more like it; search below a narrower path]\n[not searched, since it cannot be read: d0/00, d0/03, d0/06 and more]\n" +
			"[not searched: everything beyond the first 16 MiB of 18 lines in d0/00, d0/03, d0/06 and more; read_file with column reads it]",
	} {
		for seed := range uint64(20) {
			u := &unsearched{}
			for _, i := range rand.New(rand.NewPCG(seed, 1)).Perm(50) {
				name := fmt.Sprintf("d%d/%02d", i%3, i)
				u.add(unread, gap{rel: name, name: name})
				u.add(longLine, gap{rel: name, name: name, lines: i})
				u.add(failed, gap{rel: name, note: name})
				u.add(secret, gap{rel: name})
			}
			if until != "" {
				u.until(until)
			}
			if diff := cmp.Diff(want, u.notes().Text(10_000)); diff != "" {
				t.Fatalf("until %q, seed %d (-want +got):\n%s", until, seed, diff)
			}
			if got := u.leftOut(); got != leftOut[until] {
				t.Fatalf("until %q, seed %d: %q, want %q", until, seed, got, leftOut[until])
			}
		}
	}
}

// broken is a file that cannot be read to its end.
type broken struct{ io.ReadSeeker }

func (broken) Read([]byte) (int, error) { return 0, unix.EIO }

func TestSearchContentTellsWhatCannotBeRead(t *testing.T) {
	q := Query{Pattern: "needle", Mode: "content", MaxResults: 1}
	pattern, err := q.compile()
	if err != nil {
		t.Fatal(err)
	}
	report := newReport(q, 4<<10)
	s := &contentSearch{query: q, pattern: pattern, report: report}
	s.file(s.searcher(t.Context()), broken{}, 10, gap{rel: "a.txt", name: "a.txt"}, report.hits(q, false, 0))
	s.found.into(report)
	if got, want := report.result().Text(), "[nothing found]\n[not searched, since it cannot be read: a.txt]"; got != want {
		t.Errorf("the result is %q, want %q", got, want)
	}
}

// The hint of a pattern that RE2 does not know says what to use instead.
func TestHintOfUnsupportedPattern(t *testing.T) {
	const around = "search for the pattern without it and check the found lines; text before or after a match can be part of the pattern, such as foo[^b]"
	for _, tt := range []struct{ pattern, message, hint string }{
		{"foo(?=bar)", "pattern has look-around, (?=...), which is not supported", around},
		{"foo(?!bar)", "pattern has look-around, (?!...), which is not supported", around},
		{"(?<=foo)bar", "pattern has look-around, (?<=...), which is not supported", around},
		{"(?<!foo)bar", "pattern has look-around, (?<!...), which is not supported", around},
		{`(\w+) \1`, `pattern has the back-reference \1, which is not supported`, "search for the pattern with .* in its place, and compare the parts of the lines found"},
		{"a(", "pattern is not a regular expression: error parsing regexp: missing closing ): `a(`", "put a backslash before special characters, or set literal=true to find the literal text"},
	} {
		_, err := Query{Pattern: tt.pattern}.compile()
		told := tool.AsError(err)
		if err == nil || told.Message != tt.message || told.Hint != tt.hint {
			t.Errorf("compile(%s) = %v, hint %q, want %q, %q", tt.pattern, err, told.Hint, tt.message, tt.hint)
		}
	}
}
