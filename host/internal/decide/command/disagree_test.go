package command_test

import (
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/command"
)

// Each row is read as a whole by the parser, and may be read differently by bash.
func TestDisagreements(t *testing.T) {
	t.Parallel()
	for why, lines := range map[string][]string{
		"an expansion ${...} that holds more than plain letters, digits and signs": {
			`echo "${x:-'$(touch pwned)'}"`, "echo \"${x:-'`touch pwned`'}\"", `echo "${x:-'}'}"`, `echo ${x:-$y}`, `echo "${x:-a b}"`, `echo "${x#\a}"`,
			"echo \"${x:-a\nb}\"", `echo "${x:-${y}}"`, `cat <<< "${x+'$(rm x)'}"`, `echo "${a['$(rm x)']}"`, `echo ${x:-<(ls)}`, `ls "${x:-"a"}"`,
		},
		"a here-document that holds more than plain text": {
			"cat <<E\n${x:-\nE\nrm x\n}\nE\n", "cat <<E\n$(ls\nE\nrm x\n)\nE\n", "cat <<E\n`ls\nE\nrm x\n`\nE\n", "cat <<E\na\\$\nE\n",
			"cat <<E\n${x}\nE\n", "cat <<-E\n\t$(ls)\n\tE\n", "echo $(cat <<'E'\nit's\nE\n)", "cat <(cat <<'E'\n(\nE\n)",
		},
		"a here-document whose delimiter is not one plain word": {"cat <<E''1\nE1\n", "cat <<$'E'\nE\n", "cat <<\"E F\"\nE F\n"},
		"an extended pattern, or a subshell behind !, @, ?, * or +": {
			"!(rm x)", "ls && !(sudo ls)", "if !(rm x); then ls; fi", "ls @(a|b)", "ls ?(a)", "ls *(a)", "ls +(a)", "case a in !(b)) ls;; esac",
		},
		"backquotes":                                                        {"echo `ls`", "echo \"`ls`\"", "`ls`", "a=`ls`"},
		"a coprocess":                                                       {"coproc ls", "coproc a { ls; }"},
		"options of time":                                                   {"time -p ls", "time -- ls", "time -x ls"},
		"the program time, in a pipe":                                       {"ls | time cat a", "ls |& time cat a"},
		"arithmetic that is not plain":                                      {"((a[$(rm x)]))", "echo $((`rm x`))", "echo $(($(rm x)))", "for ((i=a[0];;)); do ls; done", "echo $(( (1) ))", "echo $[a[0]]", "((1+\"1\"))"},
		"let, which evaluates its words":                                    {"let 'a[$(rm x)]=1'", "let a=1", "builtin let 'a[$(rm x)]=1'"},
		"a pattern in [[ ]] that is not plain":                              {`[[ a == $(rm x) ]]`, `[[ a =~ ^(a|b)$ ]]`, `[[ a != "${x}" ]]`, `[[ a = [a] ]]`},
		"a number in [[ ]] that is not plain":                               {`[[ 'a[$(rm x)]' -eq 1 ]]`, `[[ 1 -lt "a[0]" ]]`},
		"a test of a variable whose name is not plain":                      {`[[ -v a[$(rm x)] ]]`, `[[ -v 'a[$(rm x)]' ]]`},
		"an index of an array that is not plain":                            {"a[$(rm x)]=1", "a=([$(rm x)]=1)"},
		"declare, which evaluates its words":                                {"declare -a 'x=($(rm x))'", "declare -i x=1", "declare a=1 'b[$(rm x)]=1'", `declare "$x"`, "command declare 'a[$(rm x)]=1'"},
		"export, which evaluates its words":                                 {"export 'a[$(rm x)]=1'", "builtin export 'a[$(rm x)]=1'"},
		"read, which evaluates its words":                                   {"read 'a[$(rm x)]'", "read -r $x", "command read 'a[$(rm x)]'"},
		"unset, which evaluates its words":                                  {"unset 'a[$(rm x)]'"},
		"printf -v, which evaluates its words":                              {"printf -v 'a[$(rm x)]' 1", "printf '-va[$(rm x)]' 1"},
		"test -v, which evaluates its words":                                {"test -v 'a[$(rm x)]'"},
		"[ -v, which evaluates its words":                                   {"[ -n a -a -v 'a[$(rm x)]' ]"},
		"alias, which changes how the shell reads what follows":             {"alias ls=rm", "command alias ls=rm"},
		"shopt, which changes how the shell reads what follows":             {"shopt -s extglob"},
		"set, which changes how the shell reads what follows":               {"set -H", "set -o posix", "set $x"},
		"a copy of a descriptor that is not plain":                          {"ls >& '$(rm x)'", "ls >&$x"},
		"a descriptor that is not plain":                                    {"ls 99999>/dev/null"},
		"a backslash at the end, which bash keeps":                          {`ls a\`},
		"it holds the character U+000D, which cannot be seen or told apart": {"ls\r\nrm x"},
		"it holds the character U+0000, which cannot be seen or told apart": {"ls\x00rm x"},
	} {
		for _, text := range lines {
			line := command.Parse(text, options())
			told := ""
			for _, p := range line.Problems {
				if p.Why == why {
					told = p.Why
				}
			}
			if !line.Unread || told == "" {
				t.Errorf("Parse(%q): unread %v, problems %v, want %q", text, line.Unread, line.Problems, why)
			}
		}
	}
}

// What both readers are known to read alike is not refused.
func TestAgreements(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`echo "$x" "${x}" "${HOME}/a" ${#x} "${x:-a}" "${f%.go}" "${f##*/}" "${x:+-v}" "${a[@]}" "${#a[0]}"`, `echo 'a${x:-$(rm x)}'`, "echo '`'", "git commit -m 'use `x`'",
		"cat <<E\nhello $USER, it's 5%\nE\n", "cat <<'E'\n${x:-'$(rm x)'} `ls`\nE\n", "cat <<\"E\" | wc\n$(ls\nE\n", "cat <<-E\n\ta\n\tE\n", "echo \"$(cat <<'E'\nfix it, now\nE\n)\"",
		"! grep a b", "! (ls)", "time ls", "( (ls) )", "echo $( (ls) )", "echo $((1 + 2*3))", "echo $((i+1))", "((i++))", "for ((i=0; i<3; i++)); do ls; done",
		`[[ a == b* && "$x" != 'a b' ]]`, `[[ $x -eq 1 ]]`, "[[ -v x ]]", "a[0]=1", "a=(1 2)", "declare a=1", `export PATH="$PATH:x"`, "export -p", "read -r line", "unset x", "printf '[%s]' x", "printf -v x 1",
		"test -f a", "[ -n '[' ]", "set -euo pipefail", "ls >&2 2>&1 3>&-", "ls 2>/dev/null", "ls a \\\n  b", "ls # a",
	} {
		if line := command.Parse(text, options()); line.Unread {
			t.Errorf("Parse(%q) is not read: %v", text, line.Problems)
		}
	}
}
