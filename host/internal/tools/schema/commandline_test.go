package schema_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
)

// commands is a schema with a command line, and with lists that are not one.
const commands = `{
	"type": "object",
	"properties": {
		"command": {"type": "string", "description": "a line", "x-role": "command", "x-aliases": ["cmd"]},
		"env":     {"type": "array", "description": "variables", "items": {"type": "string", "x-role": "command"}},
		"stdin":   {"type": "string", "description": "a text", "x-role": "script"},
		"path":    {"type": "string", "description": "a file", "x-role": "path"}
	}
}`

// lineOf returns the command line that a list of words becomes, or false if it is refused.
func lineOf(tb testing.TB, s *schema.Schema, words []string) (string, bool) {
	tb.Helper()
	arguments, err := json.Marshal(map[string]any{"command": words})
	if err != nil {
		tb.Fatal(err)
	}
	text, repairs, mistake := check(tb, s, string(arguments))
	if mistake != nil {
		return "", false
	}
	if want := (schema.Repair{Place: "arguments.command", Change: "words to a command line"}); !slices.Equal(repairs, []schema.Repair{want}) {
		tb.Fatalf("Check(%s) repairs %v, want %v", arguments, repairs, want)
	}
	var got struct{ Command string }
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		tb.Fatal(err)
	}
	return got.Command, true
}

func TestWordsBecomeACommandLine(t *testing.T) {
	s := compile(t, commands)
	for _, tt := range []struct {
		words []string
		want  string
	}{
		{[]string{"wc", "-l", "a.txt"}, `wc -l a.txt`},
		{[]string{"bash", "-lc", "x; y"}, `bash -lc 'x; y'`},
		{[]string{"bash", "-lc", "cd a\n\tls"}, "bash -lc 'cd a\n\tls'"},
		{[]string{"ls; touch x"}, `'ls; touch x'`},
		{[]string{"echo", ""}, `echo ''`},
		{[]string{"echo", "it's"}, `echo 'it'\''s'`},
		{[]string{"A=b", "ls"}, `'A=b' ls`},
		{[]string{"time", "time"}, `'time' time`},
		{[]string{"echo", "~", "#", "$(x)", "*", "{a,b}", "!", "%1"}, `echo '~' '#' '$(x)' '*' '{a,b}' '!' '%1'`},
	} {
		if got, ok := lineOf(t, s, tt.words); !ok || got != tt.want {
			t.Errorf("%q becomes %q, %v, want %q", tt.words, got, ok, tt.want)
		}
	}
}

// TestWordsReachBashUnchanged compares the words that a program gets from bash with the given
// ones.
func TestWordsReachBashUnchanged(t *testing.T) {
	s := compile(t, commands)
	words := []string{
		"a", "", " ", "a b", "\t", "\n", "a\nb", `\`, `\\`, "a\\\nb", `'`, `''`, `"`, `'"'`, "`id`", "$HOME", "${x:-y}", "$(id)", "$'a'", `$"a"`,
		"~", "~root", "#", "a#b", "*", "?", "[a-z]", "{a,b}", "{1..3}", "!", "!!", "^a^b", "a=b", "--a=b", "-", "--", "%1", "@(a)", "+(a)",
		";", "&", "&&", "|", "||", "(", ")", "{", "}", "<", ">", "2>&1", "<(id)", "if", "time", "[[", "é", "日本", "\u00a0", "\u2028", "\u202e",
	}
	line, ok := lineOf(t, s, append([]string{"printf", `%s\0`}, words...))
	if !ok {
		t.Fatal("the words are refused")
	}
	output, err := exec.CommandContext(t.Context(), "bash", "-c", line).Output()
	if err != nil {
		t.Fatalf("bash -c %q: %v", line, err)
	}
	if got := strings.Split(strings.TrimSuffix(string(output), "\x00"), "\x00"); !slices.Equal(got, words) {
		t.Errorf("bash reads %q, want %q", got, words)
	}
}

func TestListsThatAreNoCommandLine(t *testing.T) {
	s := compile(t, commands)
	for _, arguments := range []string{
		`{"command":[]}`, `{"command":[1]}`, `{"command":["ls",["a"]]}`, `{"command":["ls",null]}`, `{"command":{"a":"ls"}}`,
		`{"command":["ls","a\u0000b"]}`, `{"command":["ls","a\rb"]}`, `{"command":["ls","\u001b[0m"]}`, `{"command":["ls","\u007f"]}`,
		`{"command":["ls","\u0085"]}`, `{"env":[["A=b","c"]]}`, `{"stdin":["a","b"]}`, `{"path":["a"]}`,
	} {
		if got, repairs, err := check(t, s, arguments); err == nil {
			t.Errorf("Check(%s) = %s, %v, want a mistake", arguments, got, repairs)
		}
	}
	if got, _, err := check(t, s, `{"cmd":["ls","a b"]}`); err != nil || got != `{"command":"ls 'a b'"}` {
		t.Errorf("Check of an alias = %s, %v", got, err)
	}
}

// FuzzWordsOfACommandLine checks that a shell parser finds one plain command with the given
// words, which are those between slashes.
func FuzzWordsOfACommandLine(f *testing.F) {
	for _, seed := range []string{"bash/-lc/x; y", "a'b/c", "A=b/c", "time/ls", "export/A=b", "let/x=1", "/", "a\\\n/b", "{a,b}/~/%1", "\x00/a", "a/\r\n"} {
		f.Add(seed)
	}
	s := compile(f, commands)
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		words := strings.Split(text, "/")
		line, ok := lineOf(t, s, words)
		if !ok {
			if !strings.ContainsFunc(text, unicode.IsControl) {
				t.Fatalf("%q is refused", words)
			}
			return
		}
		if got := argv(t, line); !slices.Equal(got, words) {
			t.Fatalf("%q becomes %q, which a shell reads as %q", words, line, got)
		}
	})
}

// argv returns the words of a line that is one plain command.
func argv(t *testing.T, line string) []string {
	t.Helper()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil || len(file.Stmts) != 1 || len(file.Stmts[0].Redirs) > 0 {
		t.Fatalf("%q is not one command: %v", line, err)
	}
	call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 {
		t.Fatalf("%q is a %T, want a plain command", line, file.Stmts[0].Cmd)
	}
	var words []string
	for _, arg := range call.Args {
		words = append(words, "")
		for _, part := range arg.Parts {
			switch p := part.(type) {
			case *syntax.Lit:
				words[len(words)-1] += strings.ReplaceAll(p.Value, `\'`, `'`)
			case *syntax.SglQuoted:
				words[len(words)-1] += p.Value
			default:
				t.Fatalf("%q has a %T", line, part)
			}
		}
	}
	return words
}
