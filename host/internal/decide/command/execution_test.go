package command_test

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/command"
)

// Words that are known are read as they are: nothing in them is a quote, a wildcard or an
// operator.
func TestParseArgv(t *testing.T) {
	opts := command.Options{Workspace: "/ws", Assign: []string{"LANG"}}
	for _, tt := range []struct {
		argv        []string
		environment []string
		risk        command.Risk
		runs        string // the names of the commands
	}{
		{argv: []string{"ls", "-la"}, runs: "ls"},
		{argv: []string{"[", "-f", "a b", "]"}, runs: "["},
		{argv: []string{"cat", "*.go", "$x", "`y`", "a;b"}, runs: "cat"},
		{argv: []string{"cat", "/etc/passwd"}, risk: command.High, runs: "cat"},
		{argv: []string{"cat", "../x"}, risk: command.High, runs: "cat"},
		{argv: []string{"touch", "f"}, risk: command.Medium, runs: "touch"},
		{argv: []string{"./ls"}, risk: command.High, runs: "ls"},
		{argv: []string{"wc", "--files0-from=.env"}, risk: command.High, runs: "wc"},
		{argv: []string{"xargs"}, runs: "xargs"},
		{argv: []string{"xargs", "cat"}, risk: command.High, runs: "xargs cat"},
		{argv: []string{"find", ".", "-delete"}, risk: command.High, runs: "find"},
		{argv: []string{"env", "sudo", "ls"}, risk: command.High, runs: "env sudo"},
		{argv: []string{"bash", "-c", "touch f; ls"}, risk: command.High, runs: "bash touch ls"},
		{argv: []string{"eval", "touch f"}, risk: command.High, runs: "eval touch"},
		{argv: []string{"if"}, risk: command.Medium, runs: "if"},
		{argv: []string{""}, risk: command.Medium, runs: ""},
		{argv: []string{"read", "-r", "x", "rest"}, environment: []string{"IFS="}, runs: "read"},
		{argv: []string{"read", "x", "PATH"}, risk: command.High, runs: "read"},
		{argv: []string{"read", "x[1]"}, risk: command.High, runs: "read"},
		{argv: []string{"read", "x"}, environment: []string{"IFS=:"}, risk: command.High, runs: "read"},
		{argv: []string{"read", "x"}, environment: []string{"IFS=", "PATH="}, risk: command.High, runs: "read"},
		{argv: []string{"cat", "a"}, environment: []string{"IFS="}, risk: command.High, runs: "cat"},
		{argv: []string{"ls"}, environment: []string{"LANG=C"}, runs: "ls"},
		{argv: []string{"ls"}, environment: []string{"PATH=."}, risk: command.High, runs: "ls"},
		{argv: []string{"git", "status"}, environment: []string{"GIT_CONFIG_COUNT="}, risk: command.High, runs: "git"},
	} {
		line := command.ParseArgv(tt.argv, tt.environment, opts)
		var names []string
		for _, s := range line.Segments {
			if !s.Maybe {
				names = append(names, s.Name)
			}
		}
		if line.Risk() != tt.risk || strings.Join(names, " ") != tt.runs {
			t.Errorf("ParseArgv(%q, %q) = %v risk, runs %q, want %v and %q", tt.argv, tt.environment, line.Risk(), names, tt.risk, tt.runs)
		}
		if tree, err := line.Tree(); tree != nil || err != nil {
			t.Errorf("ParseArgv(%q).Tree() = %s, %v, want none", tt.argv, tree, err)
		}
	}
}

func TestParseOpen(t *testing.T) {
	opts := command.Options{Workspace: "/ws", WriteRedirects: []string{"/dev/null", "out/log"}}
	for _, tt := range []struct {
		file      string
		write     bool
		risk      command.Risk
		forbidden bool
	}{
		{file: "/ws/a"},
		{file: "/ws"},
		{file: "/dev/null"},
		{file: "/ws/.git/config", risk: command.Medium},
		{file: "/ws2/a", risk: command.High},
		{file: "/etc/passwd", risk: command.High},
		{file: "a", risk: command.Low}, // of the workspace; the host gets absolute paths only
		{file: "/dev/null", write: true},
		{file: "/ws/out/log", write: true},
		{file: "/ws/a", write: true, risk: command.Medium},
		{file: "/ws/out/log2", write: true, risk: command.Medium},
		{file: "/dev/sda", write: true, risk: command.Medium, forbidden: true},
	} {
		line := command.ParseOpen(tt.file, tt.write, opts)
		if line.Risk() != tt.risk || (line.Forbidden != "") != tt.forbidden || (len(line.Writes) == 1) != tt.write {
			t.Errorf("ParseOpen(%q, %v) = %v risk, forbidden %q, writes %q, want %v, %v, %v", tt.file, tt.write, line.Risk(), line.Forbidden, line.Writes, tt.risk, tt.forbidden, tt.write)
		}
	}
}

// A line has a tree unless it cannot be parsed or is long.
func TestTree(t *testing.T) {
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"ls -l | wc", true},
		{"cat <<E\n$x\nE", true},
		{"(", false},
		{"ls >&2 2>/dev/null <a", true},
		{"ls 3>a", false},
		{"ls {x}>a", false},
		{"diff <(ls) a", true},
		{"ls > >(cat)", false},
		{"select x in a; do ls; done", false},
		{"", true},
		{"echo " + strings.Repeat("a ", command.MaxTree/2), false},
	} {
		tree, err := command.Parse(tt.text, command.Options{}).Tree()
		if err != nil || (len(tree) > 0) != tt.want {
			t.Errorf("Parse(%.20q).Tree() has %d bytes (%v), want one: %v", tt.text, len(tree), err, tt.want)
		}
	}
}

// A shell or interpreter without a script runs what it reads, whatever lists it.
func TestRunsInput(t *testing.T) {
	for words, clean := range map[string]bool{
		"bash": false, "/bin/sh -e": false, "sh -s a": false, "python3 -": false, "bash -o pipefail": false, "bash /dev/stdin": false, "node": false,
		"bash build.sh": true, "bash -e build.sh": true, "python3 -W ignore x.py": true, "python3 --version": true, "make": true,
	} {
		if got := command.ParseArgv(strings.Fields(words), nil, command.Options{}).Segments[0].Clean; got != clean {
			t.Errorf("ParseArgv(%q) is clean: %v, want %v", words, got, clean)
		}
	}
}
