package command_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/command"
)

// told is what is told of a line: its segments with their risks, then its problems.
func told(line *command.Line) string {
	var all []string
	for _, s := range line.Segments {
		maybe := ""
		if s.Maybe {
			maybe = "?"
		}
		all = append(all, fmt.Sprintf("%s%s %q", s.Risk, maybe, s.Argv))
	}
	for _, p := range line.Problems {
		all = append(all, "! "+p.Why)
	}
	if line.Forbidden != "" {
		all = append(all, "!! "+line.Forbidden)
	}
	return strings.Join(all, "; ")
}

// The rows are holes that were found: each line was low in all of its segments, and
// had no problem.
func TestParse(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"a comment ends with a backslash", "ls # a \\\nrm x", `low ["ls" "rm" "x"]; ! a backslash at the end of a line, in the middle of a word, a comment or a document`},
		{"a comment at once", "cat #\\\n' then x'", `low ["cat" " then x"]; ! a backslash at the end of a line, in the middle of a word, a comment or a document`},
		{"the end of a document goes on", "cat <<E\n\\\nE\nrm x\nE", `low ["cat"]; ! a backslash at the end of a line, in the middle of a word, a comment or a document`},
		{"a quoted document goes on", "cat <<E''1\na \\\nE1\nE1", `low ["cat"]; ! a backslash at the end of a line, in the middle of a word, a comment or a document; ! a here-document whose delimiter is not one plain word`},
		{"no comment after a word's quotes", "cat <<'E'# rm x\nE", `low ["cat"]; ! what may be a comment or the rest of a word`},
		{"quoted braces in quoted backquotes", "echo \"`cat \"{/etc/passwd,}\"`\"", "low [\"echo\" \"\\\"`cat \\\"{/etc/passwd,}\\\"`\\\"\"]; low [\"cat\" \"{/etc/passwd,}\"]; ! backquotes"},
		{"a substitution that goes on", "echo \"$\\\n(rm x)\"", `low ["echo" "$(rm x)"]; ! a backslash at the end of a line, in the middle of a word, a comment or a document`},
		{"a parameter that goes on", "echo \"$\\\n{HOME}\"", `low ["echo" "${HOME}"]; ! a backslash at the end of a line, in the middle of a word, a comment or a document`},
		{"a word that goes on", "l\\\ns", `low ["ls"]; ! a backslash at the end of a line, in the middle of a word, a comment or a document`},
		{"time in a pipe", "ls | time cat a", `low ["ls"]; low ["cat" "a"]; ! the program time, in a pipe`},
		{"time in a pipe with errors", "ls |& time cat a", `low ["ls"]; low ["cat" "a"]; ! the program time, in a pipe`},
		{"a backslash at the end", "cat a\\", `high ["cat" "a\\"]; ! a backslash at the end, which bash keeps`},
		{"no command in a substitution", "cat <()", `low ["cat" "<()"]; ! a substitution without a command`},
		{"a bracket with a quote in it", "cat [\"a\"]", `high ["cat" "[\"a\"]"]`},
		{"a bracket that makes an option", "sort ['-']oout a", `high ["sort" "['-']oout" "a"]`},
		{"%n of printf sets a variable", "printf '%n' PATH; ls", `high ["printf" "%n" "PATH"]; low ["ls"]`},
		{"%n with a width", "printf '%%%-3ln' PATH", `high ["printf" "%%%-3ln" "PATH"]`},
		{"%n after a dash", "printf -- a%n PATH", `high ["printf" "--" "a%n" "PATH"]`},
		{"a wrapper's value becomes words", "for x in '5 rm -rf a'; do nice -n $x ls; done", `high ["nice" "-n" "$x" "ls"]; high? ["ls"]`},
		{"a wrapper's value", "stdbuf -o $x ls", `high ["stdbuf" "-o" "$x" "ls"]; high? ["ls"]`},
		{"a descriptor that is a word", "uniq a 99999999999999999999>/dev/null", `high ["uniq" "a"]; ! a descriptor that is not plain`},
		{"an allowed file in another directory", "cd sub; ls > out.log", `low ["cd" "sub"]; low ["ls"]; ! it changes the directory, and writes the file out.log`},
		{"a proxy", "for http_proxy in a:1; do go build .; done", `low ["go" "build" "."]; ! it sets http_proxy`},
		{"a value that may be missing", "ls --color /etc", `high ["ls" "--color" "/etc"]`},
		{"the pattern is a value", "grep --color foo /etc/passwd", `high ["grep" "--color" "foo" "/etc/passwd"]`},
		{"a value that may be missing, uniq", "uniq --group a b", `high ["uniq" "--group" "a" "b"]`},
		{"git writes", "git diff --stat --output=x", `high ["git" "diff" "--stat" "--output=x"]`},
		{"git writes after -U", "git diff -U --output=x", `high ["git" "diff" "-U" "--output=x"]`},
		{"git writes after --unified", "git diff --unified --output=x", `high ["git" "diff" "--unified" "--output=x"]`},
		{"git writes after --submodule", "git log --submodule --output=x", `high ["git" "log" "--submodule" "--output=x"]`},
		{"git runs itself in submodules", "git log -p --submodule=diff", `high ["git" "log" "-p" "--submodule=diff"]`},
		{"git writes after --format", "git log --format --output=x", `high ["git" "log" "--format" "--output=x"]`},
		{"git writes after --abbrev", "git log --abbrev --output=x", `high ["git" "log" "--abbrev" "--output=x"]`},
		{"git reads a file of revisions", "git blame -S /etc/passwd a", `high ["git" "blame" "-S" "/etc/passwd" "a"]`},
		{"git checks signatures", "git log --show-signature", `high ["git" "log" "--show-signature"]`},
		{"git checks signatures by a format", "git log --pretty=format:%GK", `high ["git" "log" "--pretty=format:%GK"]`},
		{"git knows the beginning of a name", "git grep --exclude --open-files-in-pager=./x foo", `high ["git" "grep" "--exclude" "--open-files-in-pager=./x" "foo"]`},
		{"go runs a program", "go vet -buildvcs -toolexec=./x .", `high ["go" "vet" "-buildvcs" "-toolexec=./x" "."]`},
		{"go takes no next word", "go vet -buildvcs /etc/x", `high ["go" "vet" "-buildvcs" "/etc/x"]`},
		{"go asks the network", "go list -m -versions example.com/x", `high ["go" "list" "-m" "-versions" "example.com/x"]`},
		{"go asks for a version", "go list example.com/x@latest", `high ["go" "list" "example.com/x@latest"]`},
		{"diff reads another file", "diff -I -- --to-file=/etc/shadow a", `high ["diff" "-I" "--" "--to-file=/etc/shadow" "a"]`},
		{"date sets the time", "date -Id -s2020-01-01", `high ["date" "-Id" "-s2020-01-01"]`},
		{"tree writes", "tree -Io a out", `high ["tree" "-Io" "a" "out"]`},
		{"rg lists files", "rg --files /etc", `high ["rg" "--files" "/etc"]`},
		{"sed ends a bracket elsewhere", "sed -n 's/[/]/;s/e;/x/p' a", `high ["sed" "-n" "s/[/]/;s/e;/x/p" "a"]`},
		{"sed ends a bracket after its first sign", "sed -n 's/[]/]/;s/e;/x/p' a", `high ["sed" "-n" "s/[]/]/;s/e;/x/p" "a"]`},
		{"sed, an address", "sed -n '/[/p;s/]/e;x/' a", `high ["sed" "-n" "/[/p;s/]/e;x/" "a"]`},
		{"test compares a file elsewhere", "[ /etc/passwd -nt a ]", `high ["[" "/etc/passwd" "-nt" "a" "]"]`},
		{"xargs takes no next word", "xargs -i sudo rm {}", `high ["xargs" "-i" "sudo" "rm" "{}"]; high ["sudo" "rm" "{}" "..."]; high? ["rm" "{}" "..."]; high? ["{}" "..."]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			line := command.Parse(tt.text, options())
			if got := told(line); got != tt.want {
				t.Errorf("Parse(%q):\n got %s\nwant %s", tt.text, got, tt.want)
			}
			if line.Risk() == command.Low {
				t.Errorf("Parse(%q) is of low risk", tt.text)
			}
		})
	}
}

// A variable of git is never one that may be set.
func TestVariablesOfGit(t *testing.T) {
	opts := command.Options{Workspace: "/home/x/ws", Assign: []string{"LANG", "GIT_DIR", "GIT_CONFIG_COUNT"}}
	for text, want := range map[string]command.Risk{
		"LANG=C git status": command.Low, "GIT_DIR=x git status": command.High, "GIT_CONFIG_COUNT=0 git status": command.High,
		"env GIT_DIR=x git status": command.High, "env LANG=C git status": command.Low,
	} {
		if got := command.Parse(text, opts).Risk(); got != want {
			t.Errorf("%s: the risk is %v, want %v", text, got, want)
		}
	}
}

// What nobody should run, however it is written.
func TestForbidden(t *testing.T) {
	for text, want := range map[string]bool{
		"rm -rf /": true, "rm -rf /*": true, "rm -r -f -- /": true, "rm --recursive ~": true, "rm -rf ~root": true, "rm -rf .": true, "rm -rf ./.": true,
		"rm -rf a/..": true, "rm -rf ../..": true, `rm -rf "$HOME"/`: true, `rm -rf "$HOME"/*`: true, "rm -rf ${PWD}": true, "rm -rf *": true, "rm -rf /?*": true,
		"rm -rf /home/x/ws": true, "rm -rf /home/x": true, "rm -rf /home/x/ws/*": true, "env -i rm -rf /": true, "doas rm -rf /": true, "busybox rm -rf /": true,
		"ssh h rm -rf /": true, "ls; (cd a && sudo rm -rf /)": true, "mv x /dev/sda": true, "echo x > /dev/sda": true, "dd if=x of=/dev/nvme0n1": true,
		"rm -rf a": false, "rm -rf ./a": false, "rm -rf build*": false, "rm -rf a/*": false, "rm -rf /tmp/x": false, "rm -rf ~/a": false, "rm -rf ?": false,
		"rm -rf $HOME/a": false, "rm /": false, "rm -f *": false, "rm -rf /home/x/ws/a": false, "rm -rf /home/xy": false, "echo rm -rf /": false, "mv x y": false,
	} {
		line := command.Parse(text, command.Options{Workspace: "/home/x/ws"})
		if got := line.Forbidden != ""; got != want {
			t.Errorf("%s: %q, want a reason: %v", text, line.Forbidden, want)
		}
	}
}
