package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/internal/shellfuzz"
	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/tool"
)

// grantedBy returns the reading of a line that runs because grants cover the commands that the
// lists do not allow.
func grantedBy(rules *Rules, patterns []command.Pattern, text string) (*command.Line, bool) {
	line := command.Parse(text, rules.Reading([]string{"/ws"}))
	in := Input{Plugin: "shell", Tool: "shell_exec", Tier: tool.Privileged, Folders: []string{"/ws"}, Commands: []Command{{Line: line}}}
	d := rules.Decide(in)
	if !d.Standing || slices.ContainsFunc(d.Unanswered, func(s *command.Segment) bool {
		return !slices.ContainsFunc(patterns, func(p command.Pattern) bool { return p.Covers(s.Words, s.Least) })
	}) {
		return nil, false
	}
	in.Grants = []string{"gr_1"}
	return line, rules.Decide(in).Verdict == Allow
}

// If grants allow a line, bash runs only commands that the lists allow or the grants name, with
// no further options.
func TestBashRunsWhatIsGranted(t *testing.T) {
	const tried = 200_000
	most := soak.Rounds(75, 700)
	_, lists := readShellCases(t)
	lists.WriteRedirects = append(lists.WriteRedirects, "out.log")
	lists.AllowStanding = true
	rules, err := New(Options{Commands: lists})
	if err != nil {
		t.Fatal(err)
	}
	rows := []string{"rm x", "rm x a b", "git push", "git push origin main", "git commit -m 'a: b'", "make test", "cp a sub", "xargs ls", "nohup ls", "ls a", "sort b"}
	var patterns []command.Pattern
	for _, text := range []string{"rm x *", "git push *", "git commit -m *", "make test", "cp *", "nohup ls"} {
		p, err := command.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		patterns = append(patterns, p)
	}
	within := func(argv []string) bool { // the commands that the grants name
		for _, p := range patterns {
			n := len(p.Words)
			if len(argv) < n || !slices.Equal(p.Words, argv[:n]) {
				continue
			}
			if rest := argv[n:]; len(rest) == 0 || p.Open && !slices.ContainsFunc(rest, func(word string) bool { return strings.HasPrefix(word, "-") }) {
				return true
			}
		}
		return false
	}
	box := newShellBox(t, t.TempDir())
	g := shellfuzz.New(soak.Seed(t))
	seen := map[string]bool{}
	ran, late := 0, 0
	for made := 0; made < tried && ran < most; made++ {
		text := g.Line(rows)
		line, ok := grantedBy(rules, patterns, text)
		if !ok || seen[text] {
			continue
		}
		seen[text] = true
		o, err := box.run(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		ran++
		if o.late {
			late++
		}
		if wrong := o.violations(line, lists.WriteRedirects); len(wrong) > 0 {
			t.Errorf("%q: %q", text, wrong)
		}
		for _, argv := range o.called {
			allowed := slices.ContainsFunc(line.Segments, func(s command.Segment) bool {
				return listed(&s, argv) && (harmless(&s) || lists.segment(&s, Level{}).Verdict == Allow)
			})
			if !allowed && !within(argv) {
				t.Errorf("%q: it ran %q, which neither a list nor a grant names", text, argv)
			}
		}
	}
	t.Logf("%d lines run in bash, %d of them stopped", ran, late)
	if ran < most || late > most/50 {
		t.Errorf("%d lines run, want %d; %d were stopped", ran, most, late)
	}
}
