package policy

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/internal/shellfuzz"
	"github.com/toolhost/toolhost/internal/soak"
)

// judged is a line that the lists let run.
type judged struct {
	text string
	line *command.Line
	// allowed is false if only the programs are known.
	allowed bool
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
func (d *differential) allowed(text string) (j judged, allowed bool) {
	line := d.parse(text, "/ws")
	decision, _ := d.lists.judge(Command{Line: line}, Level{})
	allowed = decision.Verdict == Allow
	return judged{text, line, allowed}, allowed
}

// check runs an allowed line, and returns what it did beyond the list.
func (d *differential) check(tb testing.TB, box *shellBox, j judged) (wrong []string, late bool) {
	tb.Helper()
	o, err := box.run(j.text)
	if err != nil {
		tb.Fatalf("%q: %v", j.text, err)
	}
	return d.wrong(&o, j), o.late
}

// wrong says what a line did beyond the list. If nothing allows the line, it says which programs
// ran without being named: a list that denies them would not have seen them.
func (d *differential) wrong(o *bashRun, j judged) []string {
	if j.allowed {
		return o.violations(j.line, d.lists.WriteRedirects)
	}
	return o.unnamed(j.line)
}

// Bash judges the reader: of an allowed line it runs only listed programs, and of a completely
// read line only named ones.
func TestDifferential(t *testing.T) {
	const most = 1000                // lines made for each that runs
	rounds := soak.Rounds(100, 2500) // lines of each kind that run
	d, table := newDifferential(t)
	rows := table.allowedRows()
	lines := make(chan judged)
	var workers sync.WaitGroup
	var mu sync.Mutex // guards ran, late
	ran, late := 0, 0
	for range 2 {
		box := newShellBox(t, t.TempDir())
		workers.Go(func() { // ends with the last line
			for j := range lines {
				o, err := box.run(j.text)
				if err != nil {
					t.Errorf("%q: %v", j.text, err)
					continue
				}
				if wrong := d.wrong(&o, j); len(wrong) > 0 {
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
	g := shellfuzz.New(soak.Seed(t))
	seen := map[string]bool{}
	made, allowed, named := 0, 0, 0
	send := func(text string) {
		made++
		if seen[text] {
			return
		}
		seen[text] = true
		j, ok := d.allowed(text)
		switch {
		case ok && allowed < rounds:
			allowed++
		case !ok && named < rounds && strings.Contains(text, "rm") && names(j.line):
			named++
		default:
			return
		}
		lines <- j
	}
	for made < most*rounds && (allowed < rounds || named < rounds) {
		send(g.Line(rows))
	}
	close(lines)
	workers.Wait()
	t.Logf("%d lines made, %d run that are allowed and %d that are only named, %d of them stopped", made, allowed, named, late)
	if ran < 2*rounds || late > rounds/50 {
		t.Errorf("%d lines run, want %d; %d were stopped", ran, 2*rounds, late)
	}
}

// Every row of the cases that may run does only what is listed.
func TestBashRunsTheCasesAsListed(t *testing.T) {
	d, table := newDifferential(t)
	box := newShellBox(t, t.TempDir())
	for _, row := range table.allowedRows() {
		j, ok := d.allowed(row)
		if !ok {
			t.Errorf("%q is not allowed", row)
		}
		if wrong, late := d.check(t, box, j); late || len(wrong) > 0 {
			t.Errorf("%q: stopped %v, %q", row, late, wrong)
		}
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
	if wrong, _ := d.check(t, box, judged{"!(rm x)", d.parse("ls", ""), false}); !strings.Contains(strings.Join(wrong, "\n"), `it ran ["rm" "x"]`) {
		t.Errorf("a program that is not named: found %q", wrong)
	}
	if wrong, late := d.check(t, box, judged{"while true; do true; done", d.parse("true", ""), true}); !late || len(wrong) != 0 {
		t.Errorf("an endless loop: stopped %v, found %q", late, wrong)
	}
}

// FuzzBash is for longer runs: for any text that the lists allow, bash runs only what is listed.
func FuzzBash(f *testing.F) {
	d, table := newDifferential(f)
	for _, tt := range table.Cases {
		f.Add(tt.Command)
	}
	g := shellfuzz.New(1)
	for range 200 {
		f.Add(g.Line(table.allowedRows()))
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

// allowedRows are the commands of the cases that may run.
func (s *shellCases) allowedRows() []string {
	var rows []string
	for _, tt := range s.Cases {
		if tt.Expect == Allow {
			rows = append(rows, tt.Command)
		}
	}
	return slices.Clip(rows)
}
