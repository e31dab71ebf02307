package command_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/command"
)

func TestParsePattern(t *testing.T) {
	for _, tt := range []struct {
		text  string
		words []string
		open  bool
		says  string // of an error
	}{
		{text: "git push", words: []string{"git", "push"}},
		{text: " git  push * ", words: []string{"git", "push"}, open: true},
		{text: "git --no-pager push", words: []string{"git", "push"}},
		{text: `rm 'a b' "c" \* ''`, words: []string{"rm", "a b", "c", "*", ""}},
		{text: "rm '*'", words: []string{"rm", "*"}},
		{text: "sudo rm x", words: []string{"sudo", "rm", "x"}},
		{text: "./run *", words: []string{"./run"}, open: true},
		{text: "", says: "holds no command"},
		{text: "*", says: "known only when it runs"},
		{text: "rm *x", says: "quote what the shell would replace"},
		{text: "rm $X", says: "quote what the shell would replace"},
		{text: "'rm' x", says: "not the program's name"},
		{text: "a; b", says: "more than one command"},
		{text: "a | b", says: "more than one command"},
		{text: "a $(b)", says: "words must be known"},
		{text: "a > b", says: "redirections"},
		{text: "a <<E\nE", says: "redirections"},
		{text: "X=1 a", says: "variables"},
		{text: "f() { a; }", says: "function"},
		{text: "rm 'x", says: "cannot be parsed"},
		{text: "rm \u202ex", says: "cannot be seen"},
		{text: strings.Repeat("a ", 5000), says: "longer than 4096 bytes"},
	} {
		p, err := command.ParsePattern(tt.text)
		switch {
		case tt.says != "":
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("ParsePattern(%.40q) = %v, %v; want %q", tt.text, p, err, tt.says)
			}
		case err != nil || !slices.Equal(p.Words, tt.words) || p.Open != tt.open:
			t.Errorf("ParsePattern(%q) = %q, %v; want %q, open %t", tt.text, p.Words, err, tt.words, tt.open)
		}
	}
}

func TestLeast(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int // of the first segment
	}{
		{"npm test", 2},
		{"npm test --x", 3},
		{"npm test --x y", 3},
		{"npm --x test y", 2},
		{"npm a=b", 2},
		{"npm a:b c", 2},
		{"npm /etc/x", 2},
		{"npm ../x", 2},
		{"npm .git/config", 2},
		{"npm +x", 2},
		{"npm @x", 2},
		{"npm ''", 2},
		{"git commit -m 'a: --b'", 3},
		{"git commit -m --amend", 4},
		{"git commit --message 'a=b'", 3},
		{"git commit -m x y:z", 5},
		{"npm -m a=b", 3},
		{"tool a b", 1},
		{"npm", 2}, // by its very words only: which of its commands it is, is not said
		{"git", 2},
		{"git status -s", 2}, // known to be harmless, and still it says little to name git
		{"awk x y", 4},
		{"python3.13 x", 3},
		{"python3 -m pytest", 4},
		{"sqlite3 a .shell", 4},
		{"tar xf a", 4},
		{"ls -la", 1},      // known to be harmless
		{"sort -o x y", 5}, // known not to be: by its very words only
		{"sudo ls", 3},     // runs others: the same
		{"git -C /x push", 0},
		{"npm $X", 0},
		{"npm *", 0},
		{"'npm' x", 0},
		{"X=1 npm", 0},
		{"npm > x", 0},
		{"npm < x", 0},
		{"npm <<< x", 0},
		{"npm x > /dev/null", 2},
		{"npm x 2>&1", 2},
		{"CI=1 npm x", 2}, // may be set
		{"{ npm; } < x", 0},
		{"for x in a; do npm; done <<E\nE", 0},
	} {
		line := command.Parse(tt.text, options())
		if got := line.Segments[0].Least; got != tt.want {
			t.Errorf("%q: %d, want %d", tt.text, got, tt.want)
		}
	}
	for _, fed := range []string{"echo x | npm test", "echo x | { npm test; }", "echo x | (cd a && npm test)", "echo x | if npm test; then :; fi", "cat f |& npm test", "echo $(echo x | npm test)"} {
		line := command.Parse(fed, options())
		last := slices.IndexFunc(line.Segments, func(s command.Segment) bool { return s.Name == "npm" })
		if line.Segments[last].Least != 0 {
			t.Errorf("%q: what npm reads does not count", fed)
		}
	}
}

// What a pattern covers it still covers when it was written down and read again; and it
// covers nothing that ends otherwise.
func FuzzPattern(f *testing.F) {
	for _, line := range caseLines(f) {
		f.Add(line)
	}
	f.Add(`rm 'a b' $'\n' "*" -- '' {a,b} ~ \~ '#' ! '!' a=b =`)
	f.Fuzz(func(t *testing.T, text string) {
		line := command.Parse(text, options())
		if len(line.Problems) > 0 {
			return
		}
		for _, s := range line.Segments {
			if s.Least == 0 || len(strings.Join(s.Words, " ")) > 1000 {
				continue
			}
			whole := command.Pattern{Words: s.Words}
			again, err := command.ParsePattern(whole.String())
			if err != nil || !slices.Equal(again.Words, s.Words) || again.Open || !again.Covers(s.Words, s.Least) {
				t.Errorf("%q: %q is read again as %q, %v", text, s.Words, again.Words, err)
			}
			if whole.Covers(append(slices.Clone(s.Words), "x"), s.Least) || whole.Covers(s.Words[:len(s.Words)-1], 1) {
				t.Errorf("%q: %q covers more, or less", text, s.Words)
			}
			for n := 1; n <= len(s.Words); n++ {
				open := command.Pattern{Words: s.Words[:n], Open: true}
				if open.Covers(s.Words, s.Least) != (n >= s.Least) {
					t.Errorf("%q: the first %d words of %q, of which %d are needed", text, n, s.Words, s.Least)
				}
			}
		}
	})
}
