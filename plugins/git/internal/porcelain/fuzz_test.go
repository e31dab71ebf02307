package porcelain_test

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
)

// FuzzParsers reads any input, whole and in two parts: the parsers find the same, and no more
// than was written.
func FuzzParsers(f *testing.F) {
	f.Add(nul("# branch.oid "+id, "# branch.ab +1 -2", "1 .M N... 1 2 3 4 5 a b", "2 R. N... 1 2 3 4 5 R100 to", "from", "u UU N... 1 2 3 4 5 6 7 both", "? x"), 30)
	f.Add(nul(":1 2 3 4 R100", "a", "b", "1\t2\t", "a", "b", "-\t-\tc"), 9)
	f.Add(nul(":1 2 3 4 M", "a", "1\t2\ta", "")+"diff --git a b\n", 20)
	f.Add(nul(id, "", "Ada", "a@b", "2026", "Bea", "one\n\ntwo", ""), 50)
	f.Add(id+" 1 1 2\nauthor Ada\nauthor-time 7\nsummary s\n\ttext\n", 20)
	f.Add(nul("core.bare\nfalse", "filter.a.b.clean\nx"), 3)
	f.Fuzz(func(t *testing.T, text string, at int) {
		at = max(0, min(at, len(text)))
		for name, parse := range map[string]func(parts ...string) (any, error){
			"status": parseStatus, "changes": parseChanges, "commits": parseCommits, "blame": parseBlame, "config": parseConfig,
		} {
			whole, wholeErr := parse(text)
			parts, partsErr := parse(text[:at], text[at:])
			if diff := cmp.Diff(whole, parts); diff != "" || (wholeErr == nil) != (partsErr == nil) {
				t.Errorf("%s: %v, in parts %v (-whole +parts):\n%s", name, wholeErr, partsErr, diff)
			}
		}
	})
}

func feed(w io.Writer, parts []string) {
	for _, part := range parts {
		_, _ = w.Write([]byte(part)) // it never fails
	}
}

func parseStatus(parts ...string) (any, error) {
	var found []porcelain.Entry
	s := porcelain.NewStatus(func(e porcelain.Entry) { found = append(found, e) })
	feed(s, parts)
	size := 0
	for _, e := range found {
		size += len(e.Path) + len(e.From)
	}
	if size > len(strings.Join(parts, "")) {
		panic("names came from nowhere")
	}
	return struct {
		Entries []porcelain.Entry
		Branch  porcelain.Branch
	}{found, s.Branch}, s.Close()
}

func parseChanges(parts ...string) (any, error) {
	c := porcelain.NewChanges(0)
	var patch []byte
	c.Patch = func(part []byte) error {
		patch = append(patch, part...)
		return nil
	}
	feed(c, parts)
	return struct {
		Files []porcelain.Change
		Patch string
	}{c.Files, string(patch)}, c.Close()
}

func parseCommits(parts ...string) (any, error) {
	var found []porcelain.Commit
	r := porcelain.NewCommits(func(c porcelain.Commit) error {
		found = append(found, c)
		return nil
	})
	feed(r, parts)
	return found, r.Close()
}

func parseBlame(parts ...string) (any, error) {
	var found []porcelain.Line
	b := porcelain.NewBlame(func(l porcelain.Line) { found = append(found, l) })
	feed(b, parts)
	return found, b.Close()
}

func parseConfig(parts ...string) (any, error) {
	var found []porcelain.Setting
	r := porcelain.NewRecords(func(record []byte) error {
		if s, ok := porcelain.ParseConfig(string(record)); ok {
			found = append(found, s)
		}
		return nil
	})
	feed(r, parts)
	return found, r.Close()
}
