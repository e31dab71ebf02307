package policy

import (
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/host/internal/command"
)

// judged is a line that the lists let run.
type judged struct {
	text string
	line *command.Line
}

// differential is a reader, and the lists by which its lines are judged.
type differential struct {
	lists *Commands
	parse func(text, workspace string) *command.Line
}

func newDifferential(tb testing.TB) (*differential, *shellCases) {
	tb.Helper()
	table, lists := readShellCases(tb)
	lists.WriteRedirects = append(lists.WriteRedirects, "out.log")
	d := &differential{lists: lists}
	d.parse = func(text, workspace string) *command.Line {
		return command.Parse(text, command.Options{Workspace: workspace, Assign: lists.Assign, WriteRedirects: lists.WriteRedirects})
	}
	return d, &table
}

// allowed reads a line, and reports whether it may run unasked.
func (d *differential) allowed(text string) (judged, bool) {
	line := d.parse(text, "/ws")
	decision, _ := d.lists.judge(Command{Line: line})
	return judged{text, line}, decision.Verdict == Allow
}

// check runs a line that is allowed, and returns what it did beside what is listed.
func (d *differential) check(tb testing.TB, box *shellBox, j judged) (wrong []string, late bool) {
	tb.Helper()
	o, err := box.run(j.text)
	if err != nil {
		tb.Fatalf("%q: %v", j.text, err)
	}
	return o.violations(j.line, d.lists.WriteRedirects), o.late
}

// Bash is the judge of the reader: of what is allowed it runs only what was listed.
func TestBashRunsWhatIsListed(t *testing.T) {
	const seed, most, tried = 20240607, 2500, 120_000
	d, table := newDifferential(t)
	rows := table.allowedRows()
	lines := make(chan judged)
	var workers sync.WaitGroup
	var mu sync.Mutex // guards ran, late
	ran, late := 0, 0
	for range 2 {
		box := newShellBox(t, t.TempDir())
		workers.Go(func() { // ends when there are no more lines
			for j := range lines {
				o, err := box.run(j.text)
				if err != nil {
					t.Errorf("%q: %v", j.text, err)
					continue
				}
				if wrong := o.violations(j.line, d.lists.WriteRedirects); len(wrong) > 0 {
					t.Errorf("%q: %q", j.text, wrong)
				}
				mu.Lock()
				ran++
				if o.late {
					late++
				}
				mu.Unlock()
			}
		})
	}
	g := newGenerator(seed)
	seen := map[string]bool{}
	made, sent, allowed := 0, 0, 0
	send := func(text string) {
		made++
		j, ok := d.allowed(text)
		if !ok || seen[text] {
			return
		}
		seen[text] = true
		allowed++
		// Those run first in which something lies hidden.
		if sent < most && (strings.Contains(text, "rm") || sent < most/2) {
			sent++
			lines <- j
		}
	}
	for _, row := range rows {
		send(row)
	}
	for made < tried && sent < most {
		send(g.line(rows))
	}
	close(lines)
	workers.Wait()
	t.Logf("%d lines made, %d allowed, %d run in bash, %d of them stopped", made, allowed, ran, late)
	if ran < most || late > most/100 {
		t.Errorf("%d lines run, want %d; %d were stopped", ran, most, late)
	}
}

// The same harness finds fault with a reader that only splits at spaces.
func TestBashFindsABlindReader(t *testing.T) {
	d, _ := newDifferential(t)
	d.parse = func(text, _ string) *command.Line {
		words := strings.Fields(text)
		return &command.Line{Segments: []command.Segment{{Argv: words, Words: words, Name: words[0], Known: true, Clean: true}}}
	}
	box := newShellBox(t, t.TempDir())
	for _, tt := range []struct{ text, want string }{
		{"ls ; rm x", `it ran ["rm" "x"]`},
		{"echo $(rm x)", `it ran ["rm" "x"]`},
		{"ls a >f", `it wrote "f"`},
		{"env ls& eval pwd", `it ran ["eval" "pwd"]`},
		{"cat 'a b'", `it ran ["cat" "a b"]`},
		{"cd sub; >a", `it wrote "sub/a"`},
	} {
		j, ok := d.allowed(tt.text)
		if !ok && !strings.HasPrefix(tt.text, "env") {
			t.Errorf("%q is not allowed", tt.text)
		}
		if wrong, _ := d.check(t, box, j); !strings.Contains(strings.Join(wrong, "\n"), tt.want) {
			t.Errorf("%q: found %q, want %s", tt.text, wrong, tt.want)
		}
	}
	if wrong, late := d.check(t, box, judged{"while true; do true; done", d.parse("true", "")}); !late || len(wrong) != 0 {
		t.Errorf("an endless loop: stopped %v, found %q", late, wrong)
	}
}

// FuzzBash is for longer runs: what the lists allow of any text, bash runs as listed.
func FuzzBash(f *testing.F) {
	d, table := newDifferential(f)
	for _, tt := range table.Cases {
		f.Add(tt.Command)
	}
	g := newGenerator(1)
	for range 200 {
		f.Add(g.line(table.allowedRows()))
	}
	box := newShellBox(f, f.TempDir())
	f.Fuzz(func(t *testing.T, text string) {
		j, ok := d.allowed(text)
		if !ok || strings.Contains(text, "while") || strings.Contains(text, "until") {
			return
		}
		if wrong, _ := d.check(t, box, j); len(wrong) > 0 {
			t.Errorf("%q: %q\n%+v", text, wrong, j.line)
		}
	})
}
