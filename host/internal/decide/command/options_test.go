package command

import (
	"fmt"
	"strings"
	"testing"
)

// TestSplit checks that a program's options are read as the program reads them.
func TestSplit(t *testing.T) {
	for _, tt := range []struct{ program, words, want string }{
		{"grep", "-rn x dir", "r n | x dir |"},
		{"grep", "-A5r x", "A=5r | x |"},
		{"grep", "x -A 5 -r", "A=5 r | x |"},
		{"grep", "-e r --include=*.go dir", "e=r include=*.go | dir |"},
		{"grep", "--include *.go --color x", "include=*.go color | x |"},
		{"grep", "-5 x -- -r", "5 | x -r |"},
		{"grep", "x --recurs dir -n", "n | x dir | --recurs"},
		{"grep", "-rd skip -n x", "n | skip x | -rd"},
		{"grep", "-e -r x", "r | x | -e"},
		{"grep", "x $a", "| x $a |"},
		{"grep", "x -$a", "| x | -$a"},
		{"grep", `x "-r$a"`, `| x | "-r$a"`},
		{"rg", "-nrg .env", "n r=g | .env |"},
		{"rg", "-ng !a --glob b -uu", "n g=!a glob=b u u | |"},
		{"rg", "-g", "| | -g"},
		{"xxd", "-ps a", "| a | -ps"},
	} {
		var words []word
		for text := range strings.FieldsSeq(tt.words) {
			static := !strings.Contains(text, "$")
			words = append(words, word{text: text, static: static, whole: static})
		}
		p := programs[tt.program]
		a := p.split(words)
		var got []string
		for _, o := range a.options {
			if got = append(got, o.name); o.value != "" {
				got[len(got)-1] += "=" + o.value
			}
			if o.value != "" && !strings.HasSuffix(words[o.at].text, o.value) {
				t.Errorf("%s %s: the value %q is said to be in %q", tt.program, tt.words, o.value, words[o.at].text)
			}
		}
		text := fmt.Sprintf("%s | %s | %s", strings.Join(got, " "), strings.Join(texts(a.operands), " "), a.unknown)
		if strings.Join(strings.Fields(text), " ") != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.program, tt.words, text, tt.want)
		}
	}
}
