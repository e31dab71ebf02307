package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// generator makes shell lines: by a grammar of what bash knows, and by edits that break
// them in places where two readers may disagree. The same seed makes the same lines.
type generator struct {
	*rand.Rand

	depth int
	// ends numbers the here-documents, so that none ends another one.
	ends int
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, seed))}
}

func pick[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

// chance is true once in n times.
func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

// space separates words.
func (g *generator) space() string {
	return pick(g, " ", " ", " ", " ", " ", "  ", "\t", " \\\n", "\\\n ", " \\\n\t")
}

// hidden is text that would run something if it were not quoted.
func (g *generator) hidden() string {
	return pick(g, "; rm x", "rm x", "& rm x &", "|rm x", "$(rm x)", "a b", "x", "#", "# rm x", "}", ")", "]]", "fi", "'", "`rm x`", "\nrm x\n", "\\",
		"${x}", "*", "~", "{a,b}", "<<E", "> f", "!!", "$", "\t", "\\\n", "EOF", "(", "{", ";;", "esac", "done", "é", "-o f", "--", "")
}

// word is one operand.
func (g *generator) word() string {
	switch g.IntN(20) {
	case 0, 1:
		return "'" + strings.ReplaceAll(g.hidden(), "'", `'\''`) + "'"
	case 2, 3:
		return `"` + strings.NewReplacer("\\\n", "\\\n", `\`, `\\`, `"`, `\"`, "`", "\\`", "$", `\$`).Replace(g.hidden()) + `"`
	case 4:
		return `"$(` + g.nested() + `)"`
	case 5:
		return "\"`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(g.nested()) + "`\""
	case 6:
		if g.chance(4) {
			return `"` + g.expansion() + `"`
		}
		return pick(g, `"$x"`, `"${x}"`, `"${x:-a}"`, `"${x:-'a'}"`, `"${x#a}"`, `"${x%'}'}"`, `"${x:-"a b"}"`, `"${#x}"`, `"a${x}b"`, `"$1"`, `"${x+a}"`,
			`"${x:-$(`+g.nested()+`)}"`, `"${x:-`+g.word()+`}"`, `"$((1+2))"`, `"$?"`, `"${x//a/b}"`, `"$$"`, `"$-"`)
	case 7:
		return "<(" + g.nested() + ")"
	case 8:
		return pick(g, `a''b`, `a""b`, `a\ b`, `\;`, `\&`, `a\'b`, `a#b`, `\#`, `$'a'`, `''`, `""`, `a=b`, `a:b`, `+x`, `a\`+"\n"+`b`, `"a\`+"\n"+`b"`, `{a`, `a}`, `%`, `,`, `@`, `^a`, `!`, `a!b`, `]`, `=`, `.`, "é")
	case 9:
		return pick(g, "*", "?", "[a]", "{a,b}", "{1..3}", "~", "~/x", "$x", "$'\\x41'", `$"a"`, `["a"]`, "@(a|b)", "$((1))", "a[1]", "$[1]", "9>a", "x=~", "{a\\,b}", "'['a]", `\[a]`)
	default:
		return pick(g, "a", "b", "names.txt", "src", "sub/a", "1", "foo", "bar.txt", "go.mod")
	}
}

func (g *generator) words(n int) string {
	var b strings.Builder
	for range g.IntN(n + 1) {
		b.WriteString(g.space() + g.word())
	}
	return b.String()
}

// nested is a short line inside another one.
func (g *generator) nested() string {
	if g.depth > 2 {
		return "pwd"
	}
	g.depth++
	defer func() { g.depth-- }()
	return g.list()
}

// simple is one command, most often one that the lists of the cases allow.
func (g *generator) simple() string {
	var command string
	switch g.IntN(12) {
	case 0, 1:
		command = "echo" + g.words(3)
	case 2:
		command = "printf" + g.space() + pick(g, "%s", "'%s\\n'", `"%s"`, "a%%n", "%d", "%5.2s") + g.words(2)
	case 3:
		command = "cat" + g.words(2)
	case 4:
		command = "grep" + g.space() + pick(g, "-n foo", "-e a -e b", "--color foo", "-A 1 foo", "-i -- foo", "foo") + g.words(2)
	case 5:
		command = pick(g, "[", "test") + g.space() + pick(g, "-f", "-d", "-n", "!", "-z") + g.space() + g.word()
		if strings.HasPrefix(command, "[") {
			command += g.space() + "]"
		}
	case 6:
		command = pick(g, "ls -la", "pwd", "git status", "git log -n 3", "git -C sub diff --stat", "go vet ./...", "find . -name a", "sed -n p", "sort -k 2", "uniq -c",
			"head -n 5", "wc -l", "cut -d : -f 1", "tr a b", "true", "false", "cd sub", "rg -n foo", "date +%s", "diff -u a b", "basename a", "tree -L 2", "sleep 0")
		if g.chance(3) {
			command += g.words(2)
		}
	case 7:
		command = pick(g, "ls", "cat", "grep", "wc", "head") + g.words(3)
	case 8:
		return "[[" + g.space() + pick(g, "-f a", "a == b", "a = 'x y'", "a < b", "-n \"$x\"", "! -d src", "( a == a )", "a =~ b", "a =~ ^(a|b)$", "a && b", "a == @(a|b)", "-n $(pwd)", "a == \"]]\"", "a =~ [[:space:]]") + g.space() + "]]"
	case 9:
		command = pick(g, "env", "command", "nice", "nice -n 5", "timeout 5", "time", "time -p", "stdbuf -oL", "env LC_ALL=C", "timeout -k 1 5", "command --", "env --", "nice -n $x") + g.space() + g.simpleProgram() + g.words(2)
	default:
		command = g.simpleProgram() + g.words(3)
	}
	if g.chance(8) {
		command = pick(g, "LC_ALL=C", "LANG=", "TZ='UTC'", `CI="1"`, "LC_ALL=a\\ b", "LC_ALL=$x", "NO_COLOR=1") + g.space() + command
	}
	if g.chance(5) {
		command = g.redirected(command)
	}
	return command
}

func (g *generator) simpleProgram() string {
	return pick(g, "ls", "cat", "wc", "pwd", "sort", "head", "tail", "basename", "dirname", "cut", "echo", "l\\\ns", "rm", "tr")
}

// redirected adds a redirection.
func (g *generator) redirected(command string) string {
	switch g.IntN(8) {
	case 0:
		return command + g.space() + pick(g, "2>&1", ">&2", "2>&-", "<&-", ">&1-", "3>&1")
	case 1:
		return command + g.space() + pick(g, ">", ">>", "2>", "&>", ">|", "&>>", "<>", ">&", "1>", "9>") + pick(g, "", g.space()) + pick(g, "/dev/null", "/dev/null", "out.log", `"out.log"`, "'/dev/null'", "out.lo\\\ng")
	case 2:
		return command + g.space() + "<" + g.space() + pick(g, "names.txt", "bar.txt", "/dev/null", "<(pwd)")
	case 3:
		return command + g.space() + "<<<" + g.word()
	case 4:
		return ">/dev/null" + g.space() + command
	default:
		return g.document(command)
	}
}

// document adds a here-document, or two.
func (g *generator) document(command string) string {
	g.ends++
	end := fmt.Sprintf("E%d", g.ends)
	quoted := g.chance(2)
	body := pick(g, "rm x", "a\nb", "a\\", "a \\", "a \\\n"+end, "\t\\\n"+end, " \\\n"+end+"\nrm x", "a $ \\\n(rm x)", "`pwd`", "$(pwd)", "$x", "'", `"`, "\\\n"+end, "x\\\n"+end+"\nrm x", " "+end, "\t"+end+" ", end+" ", end+")", "#", "}", "\\$(rm x)")
	word := end
	if quoted {
		body += pick(g, "", "$(rm x)", "`rm x`", "$", "${", "$((")
		word = pick(g, "'"+end+"'", `"`+end+`"`, `\`+end, end[:1]+`''`+end[1:], "$'"+end+"'", end+`\`+"\n")
	}
	operator := pick(g, "<<", "<<", "<<-", "<< ", "<<\\\n", "<< \\\n")
	first := command + g.space() + operator + word
	if g.chance(4) {
		first += pick(g, " | cat", "; pwd", " && ls", " >/dev/null", " # rm x", " | wc -l")
	}
	if strings.HasPrefix(operator, "<<-") && g.chance(2) {
		end = "\t" + end
	}
	return first + "\n" + body + "\n" + end + pick(g, "\n", "\n", "\n", "")
}

// list is several commands.
func (g *generator) list() string {
	if g.depth > 3 {
		return g.simple()
	}
	g.depth++
	defer func() { g.depth-- }()
	var line strings.Builder
	line.WriteString(g.command())
	for range pick(g, 0, 0, 0, 1, 1, 2) {
		line.WriteString(pick(g, "; ", ";", " && ", "&&", " || ", " | ", "|", " & ", "\n", " |& ", "\n\n", " # rm x\n", " #'\n", " ;\\\n", " &&\n", " |\n# rm x\n") + g.command())
	}
	return line.String() + pick(g, "", "", "", "", ";", " &", "\n", " # rm x", " #\\\n", " ")
}

// command is a simple or a compound one.
func (g *generator) command() string {
	if g.depth > 3 || !g.chance(5) {
		return g.simple()
	}
	l := g.nested
	switch g.IntN(16) {
	case 0:
		return "{ " + l() + "\n}"
	case 1:
		return "(" + l() + "\n)"
	case 2:
		return "if " + l() + "\nthen " + l() + pick(g, "\nelse pwd", "\nelif ls\nthen pwd", "") + "\nfi"
	case 3:
		return "while false; do " + l() + "\ndone"
	case 4:
		return "until true; do " + l() + "\ndone"
	case 5:
		return "for v in a" + g.words(2) + pick(g, "; ", "\n") + "do " + l() + "\ndone"
	case 6:
		return "case " + g.word() + " in " + pick(g, "a", "(a", "a|b", "*", "'('", "in", "[[:alpha:]]") + ") " + l() + pick(g, "\n;;", "\n;&", "\n;;&", "\n") + " *) pwd;; esac"
	case 7:
		return "! " + l()
	case 8:
		return "time " + l()
	case 9:
		return pick(g, "f() { ", "function f { ", "function f() { ") + l() + "\n}; f"
	case 10:
		return pick(g, "coproc ", "select v in a; do ", "let x=1 ", "((1+2)) ", "for ((;0;)); do ", "declare a=1 ", "alias ls=rm\n", "a=(1 2) ", "export x=1; ", "shopt -s extglob\n") + l() + pick(g, "", "\ndone")
	case 11:
		return "{ " + l() + "\n} >/dev/null"
	case 12:
		return "(" + l() + ")"
	case 13:
		return "{ " + l() + "; }"
	default:
		return g.redirected(g.simple())
	}
}

// expansion is a ${} whose operand bash evaluates: $x is set and $y is not. In double
// quotes and here-documents, bash takes single quotes in it for characters.
func (g *generator) expansion() string {
	operator := pick(g, "y:-", "y-", "x:+", "x+", "y:-a", "x+'a'")
	if g.chance(4) {
		return "${" + operator + g.word() + "}"
	}
	operand := pick(g, "'$(%)'", "'$(%)", "a'$(%)'b", "'`%`'", `\'$(%)\'`, `'"$(%)"'`, `"'$(%)'"`, "$'$(%)'", "'}'$(%)'", "'a'", "'", "'}'", "a")
	return "${" + operator + strings.ReplaceAll(operand, "%", g.ran()) + "}"
}

// opened is a here-document whose end stands inside an expansion or a substitution.
func (g *generator) opened() string {
	g.ends++
	end := fmt.Sprintf("E%d", g.ends)
	within := pick(g, "a\n", "\n", "") + end + "\n" + g.ran() + "\n"
	body := pick(g, "${y:-\n%}", "${x+\n%}", "${y:-'\n%'}", "${y:-\"\n%\"}", "a ${y:-$(ls\n%)}", "$(ls\n%)", "`ls\n%`", "$((1+\n%1))",
		"$(echo '%')", "$(echo a '\n%')", "$(echo \"%\")", "`echo '%'`", "a $(ls; echo '%')", "$(ls <<'X'\n%X\n)")
	return "cat " + pick(g, "<<", "<<-") + end + "\n" + strings.ReplaceAll(body, "%", within) + "\n" + end + "\n"
}

// ran is a command that no list of the cases allows, or one that they do.
func (g *generator) ran() string { return pick(g, "rm x", "rm x", "rm x", "rm", "ls") }

// disputed is a line with a construct that has been read otherwise than by bash, as it
// is or among others.
func (g *generator) disputed() string {
	command := g.ran()
	line := pick(g,
		func() string {
			return pick(g, "echo ", "printf ", "echo a ", "[[ -n ", "cat <<< ") + `"` + pick(g, "", "a", "a ") + g.expansion() + `"`
		},
		func() string { return "cat <<E\n" + pick(g, "", "a ", "'") + g.expansion() + "\nE\n" },
		g.opened, g.opened,
		func() string {
			return "ls " + pick(g, ">&", "2>&", "<&") + pick(g, " ", "") + pick(g, "'o$(%)'", `o\$\(%\)`, "'`%`'")
		},
		func() string { return pick(g, "!", "!", "!", "@", "?", "*", "+") + "(%)" },
		func() string {
			return pick(g, "ls && !(%)", "if !(%)\nthen ls; fi", "ls; !(%)", "! !(%)", "{ !(%)\n}", "time !(%)", "!(%) | ls", "!(ls|%)")
		},
	)()
	line = strings.ReplaceAll(line, "%", command)
	if strings.HasPrefix(line, "[[") {
		line += " ]]"
	}
	if g.chance(3) {
		line = pick(g, "%\nls", "ls; %", "{ %\n}", "ls && %", "( %\n)", "if ls\nthen %\nfi", "echo $( %\n)")
		line = strings.ReplaceAll(line, "%", g.disputed())
	}
	if g.chance(5) {
		line = g.edit(line)
	}
	return line
}

// tokens are what edits insert: signs that open, close, quote and separate.
//
//nolint:gochecknoglobals // a table
var tokens = []string{
	"'", `"`, "`", `\`, "\\\n", "\n", ";", "&", "|", "&&", "||", "(", ")", "{", "}", "{ ", "; }", "#", " #", "$", "$(", "$((", "))", "${", "${x:-", "$'", `$"`,
	"<<E\n", "\nE\n", "<<'E'\n", "<<-E\n", "<(", ">(", "<", ">", ">&", "&>", "<<<", "[[ ", " ]]", "[", "]", "!", " ! ", "=", "+=", "*", "?", "~", "^", "%", ",", "..",
	" rm x ", "; rm x;", "\nrm x\n", "|rm x", "&rm x", "$(rm x)", "`rm x`", " if ", " then ", " fi", " do ", " done", " case a in a)", ";;", " esac", " time ", " function ",
	" coproc ", " for v in ", "{a,", "a()", "a[", "]=1 ", "/", "-", "--", "1>", "2", "0", "@(", "!(", "+(", " in ", "\t", "  ", "\\\\", `\"`, `\'`, "\\`", "\\$", "a=", "LC_ALL=", "((", "$[", "|&", ";&",
}

// edit breaks a line at one to six places.
func (g *generator) edit(line string) string {
	for range 1 + g.IntN(6) {
		at := g.IntN(len(line) + 1)
		switch g.IntN(6) {
		case 0:
			to := min(len(line), at+1+g.IntN(3))
			line = line[:at] + line[to:]
		case 1: // a piece is moved
			to := min(len(line), at+1+g.IntN(8))
			piece := line[at:to]
			line = line[:at] + line[to:]
			at = g.IntN(len(line) + 1)
			line = line[:at] + piece + line[at:]
		default:
			line = line[:at] + pick(g, tokens...) + line[at:]
		}
	}
	return line
}

// soup is a line of tokens and commands without any order.
func (g *generator) soup() string {
	var b strings.Builder
	b.WriteString(pick(g, "echo ", "ls ", "cat ", "echo \"", "echo '", "cat <<E\n", "[[ ", "case a in a) ", "echo \"${x:-", "echo `", "echo $("))
	for range 2 + g.IntN(10) {
		b.WriteString(pick(g, tokens...))
		if g.chance(2) {
			b.WriteString(pick(g, " echo a ", " ls ", "a", " b", "x", " ", "cat", "E"))
		}
	}
	return b.String()
}

// line is one of all kinds; rows are whole lines to begin with.
func (g *generator) line(rows []string) string {
	g.depth, g.ends = 0, 0
	switch g.IntN(11) {
	case 0, 1, 2:
		return g.list()
	case 10:
		return g.disputed()
	case 3, 4, 5:
		return g.edit(g.list())
	case 6:
		return g.soup()
	case 7:
		return g.edit(g.edit(pick(g, rows...)))
	default:
		return g.edit(pick(g, rows...))
	}
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
