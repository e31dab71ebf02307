package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/syntax"
	"mvdan.cc/sh/v3/syntax/typedjson"

	"github.com/toolhost/toolhost/internal/testprogram"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// treeOf is what the host hands over of a command.
func treeOf(tb testing.TB, text string) json.RawMessage {
	tb.Helper()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		tb.Fatalf("%q: %v", text, err)
	}
	var tree bytes.Buffer
	if err := typedjson.Encode(&tree, file); err != nil {
		tb.Fatalf("%q: %v", text, err)
	}
	return tree.Bytes()
}

// judge lets run what the host would let run of an administrator who lists some programs,
// and keeps what it was asked.
type judge struct {
	programs  []string // that may run; nil: all
	workspace string

	mu    sync.Mutex // guards asked
	asked []string
}

func (j *judge) mayRun(e tool.Execution) *tool.Error {
	words := slices.Concat(e.Environment, e.Argv)
	switch {
	case e.Argv == nil && e.Write:
		words = []string{">", e.File}
	case e.Argv == nil:
		words = []string{"<", e.File}
	}
	text := strings.ReplaceAll(strings.Join(words, " "), j.workspace, "WS")
	j.mu.Lock()
	j.asked = append(j.asked, text)
	j.mu.Unlock()
	allowed := j.programs == nil || len(e.Environment) == 0 && (e.Argv == nil && !e.Write || e.Argv != nil && slices.Contains(j.programs, e.Argv[0]))
	if allowed || e.File == "/dev/null" {
		return nil
	}
	return tool.Errorf(tool.PermissionDenied, "this needs approval: %s", text)
}

// startJudged starts the plugin with a judge and a workspace.
func startJudged(tb testing.TB, programs []string) (run func(text string, judged ...tool.Judged) tool.Result, j *judge, workspace string) {
	tb.Helper()
	options := shellOptions(nil)
	workspace = workspaceOf(tb)
	options.Context = tool.Context{Roots: []string{workspace}, User: "ann", Session: "s1"}
	j = &judge{programs: programs, workspace: workspace}
	options.MayRun = j.mayRun
	p := sdktest.Start(tb, newPlugin(), options)
	for name, text := range map[string]string{"a.go": "a\n", "b.go": "b\nb\n", "word": "from a file\n", "sub/c": "c\n"} {
		path := filepath.Join(workspace, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return func(text string, judged ...tool.Judged) tool.Result {
		j.mu.Lock()
		j.asked = nil
		j.mu.Unlock()
		call := tool.Call{Tool: "shell_exec", Arguments: asJSON(tb, map[string]any{"command": text}), CommandTree: treeOf(tb, text), Judged: judged, JudgedUntil: time.Now().Add(time.Hour)}
		return p.Run(tb.Context(), call, tool.Sink{})
	}, j, workspace
}

// A command that is executed by its tree does what bash does with its text.
func TestTreeDoesAsBash(t *testing.T) {
	byTree, _, first := startJudged(t, nil)
	byText, second := startShell(t, nil)
	for _, name := range []string{"a.go", "b.go", "word", "sub/c"} {
		data, err := os.ReadFile(filepath.Join(first, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(second, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(second, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{
		`echo hello; echo there >&2`,
		`cat a.go b.go | sort | uniq -c | wc -l`,
		`for f in *.go; do wc -l "$f"; done`,
		`x=1; echo "$x $HOME" | tr a-z A-Z | cut -c1`,
		`cat <word; cat <<E` + "\nhi $((1+2))\nE",
		`cd sub && cat c && pwd | sed 's/.*\///'`,
		`test -f a.go && echo yes || echo no; [ -d sub ]; echo $?`,
		`false; echo $?; (exit 3); echo $?`,
		`exit 7`,
		`no-such-program; echo $?`,
		`ls nothing 2>/dev/null; echo $?`,
		`echo one >out; echo two >>out; cat out`,
		`echo {a,b}c "q  q" $(cat word)`,
		`{ sh -c 'kill -9 $$'; echo $?; } 2>/dev/null`,
		`yes | head -n 3`,
		`printf '%s-' a b; echo`,
		`while read -r l; do echo "<$l>"; done <b.go`,
		`case a.go in *.go) echo go;; esac`,
		`diff <(sort a.go) <(sort b.go)`,
		`f() { echo "in $1"; return 4; }; f x; echo $?`,
		`set -e; false; echo never`,
		`trap 'echo bye' EXIT; echo hi`,
		`env | grep '^LC_TIME='; env | grep -c SECRET`,
		`cat word | (read -r a b; echo "$b $a")`,
		`all=(a.go b.go); cat "${all[@]}" | wc -l; echo ${#all[@]} "${all[1]}"`,
		`n=1; while [ $n -lt 4 ]; do echo $n; n=$((n+1)); done; for i in {1..3}; do echo $i; done`,
		`x=a.b.c; echo ${x%.*} ${x##*.} ${x/a/z} ${x^^} ${x:2:1} ${#x} ${none:-d}`,
		`wc -l $(ls *.go); echo *.none; ls sub/*; echo */c`,
		`echo -ne 'a\n'; echo -en 'b\n'; echo -n c; echo -nx; echo -E 'd\n'; echo hi | (cat </dev/stdin)`,
		`printf '"a b" c\n d\n\n' | xargs -I{} echo '<{}>'; printf '  a\n\n' | xargs -d '\n' -I{} echo '<{}>'; echo "it's" | xargs -I{} echo {}; echo $?`,
		`echo 1 | xargs sh -c 'exit 126'; echo $?; echo 1 | xargs sh -c 'exit 255'; echo $?; printf 'a b c' | xargs -rn2 echo`,
		`ls *.go | xargs wc -l; ls *.go | xargs -n1 echo x; ls | xargs -I{} echo '{}' is {}; printf 'a b\n c\n' | xargs`,
		`printf 'a\0b c\0' | xargs -0 printf '<%s>'; printf '"a b" c\\ d' | xargs printf '<%s>'; printf '' | xargs -r echo no; printf '' | xargs echo yes`,
		`printf 'a:b:' | xargs -d: printf '<%s>'; echo 1 2 | xargs false; echo $?; echo 1 2 | xargs -n1 no-such; echo $?; echo "'" | xargs echo; echo $?`,
		`find . -name '*.go' -exec wc -l {} \; | sort; find . -type f -exec wc -c {} + | wc -l; find sub -exec false {} +; echo $?`,
		`find . -name '*.go' -exec grep -q b {} \; -print | sort; find . -name 'a*' -o -name 'b*' -exec grep -c b {} \; -print; find sub -exec false {} \; -print; echo $?`,
		`seq 5 | xargs -n2 | wc -l; seq 3 | xargs -P4 -I% echo % | sort`,
	} {
		got, want := byTree(text), byText.Call(t.Context(), "shell_exec", map[string]any{"command": text})
		g, w := structured(t, got), structured(t, want)
		g.DurationMS, w.DurationMS = 0, 0
		g.Cwd, w.Cwd = strings.TrimPrefix(g.Cwd, first), strings.TrimPrefix(w.Cwd, second)
		g.Stderr, w.Stderr = lastWord(g.Stderr), lastWord(w.Stderr) // each names itself first
		g.StderrBytes, w.StderrBytes = 0, 0
		if diff := cmp.Diff(w, g); diff != "" {
			t.Errorf("%s (-bash +tree):\n%s", text, diff)
		}
	}
}

// lastWord is what a shell's own message ends with.
func lastWord(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// Each part is asked about as the program gets it, whatever the words of the line were.
func TestTreeAsks(t *testing.T) {
	run, j, workspace := startJudged(t, nil)
	if err := os.Symlink("sub/c", filepath.Join(workspace, "link")); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(workspace, "bin")
	for _, err := range []error{os.Mkdir(bin, 0o755), testprogram.Write(filepath.Join(bin, "tool"), strings.NewReader("#!/bin/sh\n"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		text string
		want []string
	}{
		{`ls a*`, []string{"< WS", "ls a.go"}},
		{`d=sub; echo $d/*`, []string{"< WS/sub", "< WS/sub", "echo sub/c"}},
		{`echo "a*" 'b*'`, []string{"echo a* b*"}},
		{`xargs -n1 cat word <sub/c`, []string{"< WS/sub/c", "xargs", "cat word c"}},
		{`xargs -a word cat`, []string{"xargs -a word cat"}},
		{`find sub -type f -exec cat {} +`, []string{"find sub -type f -print0", "cat sub/c"}},
		{`find sub -type f -exec cat {} \; -print`, []string{"find sub -type f -print0", "cat sub/c"}},
		{`find sub -exec cat {} \; -quit`, []string{"find sub -exec cat {} ; -quit"}},
		{`find sub -exec cat {} \; -print -quit`, []string{"find sub -exec cat {} ; -print -quit"}},
		{`find sub -type f -ok cat {} \;`, []string{"find sub -type f -ok cat {} ;"}},
		{`x=touch; $x f`, []string{"touch f"}},
		{`{touch,f}`, []string{"touch f"}},
		{`cat <word`, []string{"< WS/word", "cat"}},
		{`cat <link`, []string{"< WS/sub/c", "cat"}},
		{`echo a >sub/new`, []string{"> WS/sub/new", "echo a"}},
		{`echo "$(cat word)"`, []string{"cat word", "echo from a file"}},
		{`eval "echo a; cat word"`, []string{"eval echo a; cat word", "echo a", "cat word"}},
		{`f() { cat word; }; f`, []string{"cat word"}},
		{`command cat word`, []string{"command cat word", "cat word"}},
		{`. ./sub/c`, []string{". ./sub/c", "< WS/sub/c", "c"}},
		{`LD_PRELOAD=x cat word`, []string{"LD_PRELOAD=x cat word"}},
		{`export A=b; cat word`, []string{"A=b cat word"}},
		{`unset GIT_PAGER NO_SUCH; cat word`, []string{"unset GIT_PAGER NO_SUCH", "GIT_PAGER= cat word"}},
		{`GIT_PAGER=x; GIT_PAGER=cat; cat word`, []string{"cat word"}},
		{`PATH=$PWD/bin; tool`, []string{"PATH=WS/bin WS/bin/tool"}},
		{`bash <<<'touch f'`, []string{"bash"}},
		{`trap 'cat word' EXIT`, []string{"trap cat word EXIT", "cat word"}},
		{`test -f word`, []string{"test -f word"}},
		{`while IFS= read -r l; do echo "$l"; done <sub/c`, []string{"< WS/sub/c", "IFS= read -r l", "echo c", "IFS= read -r l"}},
		{`read PATH <sub/c; ls`, []string{"< WS/sub/c", "read PATH", "PATH= ls"}},
	} {
		run(tt.text)
		j.mu.Lock()
		if diff := cmp.Diff(tt.want, j.asked); diff != "" {
			t.Errorf("%s (-want +asked):\n%s", tt.text, diff)
		}
		j.mu.Unlock()
	}
	run(`diff <(sort a.go) <(sort b.go)`) // in no order
	for _, want := range []string{"sort a.go", "sort b.go", "diff /dev/stdin /dev/stdin"} {
		if !slices.Contains(j.asked, want) {
			t.Errorf("a process substitution asks about %q, want %q among it", j.asked, want)
		}
	}
}

// A part that the host has answered in advance is not asked about, unless it is not quite
// that part any more.
func TestTreeAsksNothingTwice(t *testing.T) {
	run, j, workspace := startJudged(t, nil)
	bin := filepath.Join(workspace, "bin")
	for _, err := range []error{os.Mkdir(bin, 0o755), testprogram.Write(filepath.Join(bin, "cat"), strings.NewReader("#!/bin/sh\n"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cat := tool.Judged{Execution: tool.Execution{Argv: []string{"cat", "a.go"}, Directory: workspace}, Unlinked: []string{filepath.Join(workspace, "a.go")}}
	null := tool.Judged{Execution: tool.Execution{File: "/dev/null", Directory: workspace, Write: true}}
	for _, tt := range []struct {
		text string
		want []string
	}{
		{`cat a.go`, nil},
		{`cat a.go | cat "a.go" >/dev/null`, nil},
		{`for i in {1..3}; do cat a*; done`, []string{"< WS", "< WS", "< WS"}},
		{`cat a.go b.go`, []string{"cat a.go b.go"}},
		{`/bin/cat a.go`, []string{"/bin/cat a.go"}},
		{`cd sub; cat a.go`, []string{"cd sub", "cat a.go"}},
		{`A=b cat a.go`, []string{"A=b cat a.go"}},
		{`PATH=$PWD/bin:$PATH; cat a.go`, []string{"PATH=WS/bin:" + os.Getenv("PATH") + " WS/bin/cat a.go"}},
		{`export PATH="$PWD/bin:$PATH"; cat a.go`, []string{"PATH=WS/bin:" + os.Getenv("PATH") + " WS/bin/cat a.go"}},
		{`f() { local PATH=$PWD/bin; cat a.go; }; f`, []string{"PATH=WS/bin WS/bin/cat a.go"}},
		{`unset PATH; cat a.go`, []string{"unset PATH", "PATH= cat a.go"}},
		{`HOME=/none; cat a.go`, []string{"HOME=/none cat a.go"}},
		{`export LD_PRELOAD=x; cat a.go`, []string{"LD_PRELOAD=x cat a.go"}},
		{`set -a; GIT_DIR=x; cat a.go`, []string{"set -a", "GIT_DIR=x cat a.go"}},
		{`read PATH <word; cat a.go`, []string{"< WS/word", "read PATH", "PATH= cat a.go"}},
		{`for PATH in bin; do cat a.go; done`, []string{"PATH= cat a.go"}},
		{`cat() { command cat b.go; }; cat a.go`, []string{"command cat b.go", "cat b.go"}},
		{`exec cat a.go`, []string{"exec cat a.go"}},
		{`eval 'cat a.go'`, []string{"eval cat a.go"}},
		{`trap 'cat a.go' EXIT`, []string{"trap cat a.go EXIT"}},
		{`set -e; cat a.go`, []string{"set -e"}},
		{`env cat a.go`, []string{"env cat a.go"}},
		{`xargs cat a.go <sub/c`, []string{"< WS/sub/c", "xargs", "cat a.go c"}},
		{`$(cat a.go)`, []string{"a"}},
		{`(cd sub; cat a.go); cat a.go`, []string{"cd sub", "cat a.go"}},
		{`cat a.go & cat a.go | cat a.go`, nil},
		{`cat a.go >new`, []string{"> WS/new"}},
		{`cat a.go </dev/null`, []string{"< /dev/null"}},
		{`cat a.go <>/dev/null >>/dev/null 2>&1`, nil},
		{`ln -s . sub/way; cd sub/way; cat a.go`, []string{"ln -s . sub/way", "cd sub/way", "cat a.go"}},
		{`mv a.go c.go; ln c.go a.go; cat a.go`, []string{"mv a.go c.go", "ln c.go a.go"}},
		{`ln -sf b.go a.go; cat a.go`, []string{"ln -sf b.go a.go", "cat a.go"}},
	} {
		run(tt.text, cat, null)
		j.mu.Lock()
		if diff := cmp.Diff(tt.want, j.asked); diff != "" {
			t.Errorf("%s (-want +asked):\n%s", tt.text, diff)
		}
		j.mu.Unlock()
	}
	if run(`cat a.go`); !slices.Equal(j.asked, []string{"cat a.go"}) {
		t.Errorf("the next call asked about %q, want all of it: an answer in advance is for one call", j.asked)
	}
}

// A command that takes all memory shows nothing of the interpreter.
func TestTreeOutOfMemory(t *testing.T) {
	options := shellOptions(map[string]any{"limits": map[string]any{"memory": "512MiB"}})
	options.Context = tool.Context{Roots: []string{workspaceOf(t)}, User: "ann", Session: "s1"}
	options.MayRun = func(tool.Execution) *tool.Error { return nil }
	text := `x=a; for i in {1..45}; do x=$x$x; done; echo there`
	call := tool.Call{Tool: "shell_exec", Arguments: asJSON(t, map[string]any{"command": text}), CommandTree: treeOf(t, text)}
	result := structured(t, sdktest.Start(t, newPlugin(), options).Run(t.Context(), call, tool.Sink{}))
	if result.ExitCode == 0 || result.Stdout != "" || strings.Contains(result.Stderr, "goroutine") {
		t.Errorf("it ended with %d and wrote %q and %.300q", result.ExitCode, result.Stdout, result.Stderr)
	}
}

// A link that a command puts beside the pipe of a process substitution counts as what it
// is, not as a pipe.
func TestTreeLinkAmongPipes(t *testing.T) {
	run, j, _ := startJudged(t, nil)
	result := run(`f() { d=$(dirname "$1"); ln -s "$PWD/word" "$d/link"; cat "$d/link" "$1"; }; f <(true)`)
	if got := structured(t, result).Stdout; got != "from a file\n" {
		t.Fatalf("the link was not read: %q", got)
	}
	if !slices.ContainsFunc(j.asked, func(text string) bool {
		return strings.HasPrefix(text, "cat /") && strings.HasSuffix(text, "/link /dev/stdin")
	}) {
		t.Errorf("asked about %q, want the link by its path", j.asked)
	}
}

// A part that may not run ends the command: nothing after it runs, and what has run is
// told.
func TestTreeIsRefused(t *testing.T) {
	run, j, workspace := startJudged(t, []string{"echo", "cat", "ls", "sort", "sleep", "true", "command", "cd", "xargs"})
	for _, tt := range []struct{ text, output, refused string }{
		{`echo a; touch pwned; echo b`, "a\n", "touch pwned"},
		{`x=touch; $x pwned`, "", "touch pwned"},
		{`{touch,pwned}`, "", "touch pwned"},
		{`echo a >pwned`, "", "> WS/pwned"},
		{`echo a >>word`, "", "> WS/word"},
		{`eval 'touch pwned'`, "", "eval touch pwned"},
		{`cat word | bash -c 'cat; touch pwned'`, "", "bash -c cat; touch pwned"},
		{`bash <<<'touch pwned'`, "", "bash"},
		{`(touch pwned) || echo b`, "", "touch pwned"},
		{`echo "$(touch pwned)"`, "", "touch pwned"},
		{`f() { touch pwned; }; f || true`, "", "touch pwned"},
		{`PATH=; ls`, "", "PATH= ls"},
		{`umask 0`, "", "builtin umask 0"},
		{`source word`, "", "source word"},
		{`cd sub && ./c`, "", "./c"},
		{`mv *.go pwned`, "", "mv a.go b.go pwned"},
		{`ls *.go | xargs -I{} mv {} pwned`, "", "mv a.go pwned"},
		{`sleep 100 & echo a; touch pwned`, "a\n", "touch pwned"},
	} {
		result := run(tt.text)
		if result.Error == nil || result.Error.Message != "this needs approval: "+tt.refused {
			t.Errorf("%s: %v, want %q refused (asked %q)", tt.text, result.Error, tt.refused, j.asked)
			continue
		}
		if got := structured(t, result).Stdout; got != tt.output {
			t.Errorf("%s: wrote %q, want %q", tt.text, got, tt.output)
		}
		if _, err := os.Stat(filepath.Join(workspace, "pwned")); err == nil {
			t.Fatalf("%s: it ran", tt.text)
		}
	}
	if word, err := os.ReadFile(filepath.Join(workspace, "word")); err != nil || string(word) != "from a file\n" {
		t.Errorf("a refused redirection has changed the file: %q, %v", word, err)
	}
}
