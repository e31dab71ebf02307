package command_test

import (
	"slices"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/command"
)

// A line that was joined is read as the words that it was joined of, whatever is
// in them.
func TestJoin(t *testing.T) {
	for _, words := range [][]string{
		{"ls"},
		{"rm", "-rf", "/"},
		{"grep", "-e", "it's", "a b", "", "*.go", "$HOME", "`id`", "~", "a;b", "a|b", ">x", "#", "{a,b}", "!", "\\", "\n", "é"},
		{"git", "commit", "--message=a b", "-c", "a=b", "a=$(id)"},
		{"A=b", "ls"},
		{"/bin/ls", "a@b", "1%", "+x", "a:b,c"},
	} {
		line := command.Parse(command.Join(words), command.Options{Workspace: "/ws"})
		if len(line.Problems) > 0 || line.Unread || len(line.Segments) == 0 || !slices.Equal(line.Segments[0].Argv, words) {
			t.Errorf("Join(%q) = %q is read as %s", words, command.Join(words), told(line))
		}
	}
	// What only a shell knows is no program: the line is not one that rules allow.
	for _, words := range [][]string{{"if"}, {"[["}, {""}, {"a b"}} {
		if line := command.Parse(command.Join(words), command.Options{Workspace: "/ws"}); line.Risk() == command.Low {
			t.Errorf("Join(%q) = %q is of low risk", words, command.Join(words))
		}
	}
}

func FuzzJoin(f *testing.F) {
	f.Add("ls", "-l")
	f.Add("rm", "a'b\\")
	f.Add("x", "=\n$'`\"")
	f.Fuzz(func(t *testing.T, program, argument string) {
		line := command.Parse(command.Join([]string{"cat", argument, program}), command.Options{Workspace: "/ws"})
		for _, s := range line.Segments {
			if want := []string{"cat", argument, program}; !line.Unread && len(line.Problems) == 0 && (len(line.Segments) != 1 || !slices.Equal(s.Argv, want)) {
				t.Errorf("%q is read as %s", want, told(line))
			}
		}
	})
}
