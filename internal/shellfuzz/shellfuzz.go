// Package shellfuzz makes shell lines for tests: by a grammar of bash's constructs, by edits
// that break them where two readers may disagree, and by words that are known only at run time.
// Some lines would remove the file x or make the file f if a reader overlooked it.
package shellfuzz

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
)

// Generator makes shell lines. The same seed makes the same lines. It is for one goroutine.
type Generator struct {
	*rand.Rand

	depth int
	// ends numbers the here-documents, so that none ends another one.
	ends int
}

// New returns a generator.
func New(seed uint64) *Generator {
	return &Generator{Rand: rand.New(rand.NewPCG(seed, seed))}
}

// Pick returns one of several things.
func Pick[T any](g *Generator, of ...T) T { return of[g.IntN(len(of))] }

// End returns a word for the end of a here-document that ends no other one of the line.
func (g *Generator) End() string {
	g.ends++
	return fmt.Sprintf("E%d", g.ends)
}

// Chance is true once in n times.
func (g *Generator) Chance(n int) bool { return g.IntN(n) == 0 }

// space separates words.
func (g *Generator) space() string {
	return Pick(g, " ", " ", " ", " ", " ", "  ", "\t", " \\\n", "\\\n ", " \\\n\t")
}

// hidden is text that would run something if it were not quoted.
func (g *Generator) hidden() string {
	return Pick(g, "; rm x", "rm x", "& rm x &", "|rm x", "$(rm x)", "a b", "x", "#", "# rm x", "}", ")", "]]", "fi", "'", "`rm x`", "\nrm x\n", "\\",
		"${x}", "*", "~", "{a,b}", "<<E", "> f", "!!", "$", "\t", "\\\n", "EOF", "(", "{", ";;", "esac", "done", "é", "-o f", "--", "")
}

// word is one operand.
func (g *Generator) word() string {
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
		if g.Chance(4) {
			return `"` + g.expansion() + `"`
		}
		return Pick(g, `"$x"`, `"${x}"`, `"${x:-a}"`, `"${x:-'a'}"`, `"${x#a}"`, `"${x%'}'}"`, `"${x:-"a b"}"`, `"${#x}"`, `"a${x}b"`, `"$1"`, `"${x+a}"`,
			`"${x:-$(`+g.nested()+`)}"`, `"${x:-`+g.word()+`}"`, `"$((1+2))"`, `"$?"`, `"${x//a/b}"`, `"$$"`, `"$-"`)
	case 7:
		return "<(" + g.nested() + ")"
	case 8:
		return Pick(g, `a''b`, `a""b`, `a\ b`, `\;`, `\&`, `a\'b`, `a#b`, `\#`, `$'a'`, `''`, `""`, `a=b`, `a:b`, `+x`, `a\`+"\n"+`b`, `"a\`+"\n"+`b"`, `{a`, `a}`, `%`, `,`, `@`, `^a`, `!`, `a!b`, `]`, `=`, `.`, "é")
	case 9:
		return Pick(g, "*", "?", "[a]", "{a,b}", "{1..3}", "~", "~/x", "$x", "$'\\x41'", `$"a"`, `["a"]`, "@(a|b)", "$((1))", "a[1]", "$[1]", "9>a", "x=~", "{a\\,b}", "'['a]", `\[a]`)
	default:
		return Pick(g, "a", "b", "names.txt", "src", "sub/a", "1", "foo", "bar.txt", "go.mod")
	}
}

func (g *Generator) words(n int) string {
	var b strings.Builder
	for range g.IntN(n + 1) {
		b.WriteString(g.space() + g.word())
	}
	return b.String()
}

// nested is a short line inside another one.
func (g *Generator) nested() string {
	if g.depth > 2 {
		return "pwd"
	}
	g.depth++
	defer func() { g.depth-- }()
	return g.list()
}

// simple returns one command, usually one that the lists of the cases allow.
func (g *Generator) simple() string {
	var command string
	switch g.IntN(12) {
	case 0, 1:
		command = "echo" + g.words(3)
	case 2:
		command = "printf" + g.space() + Pick(g, "%s", "'%s\\n'", `"%s"`, "a%%n", "%d", "%5.2s") + g.words(2)
	case 3:
		command = "cat" + g.words(2)
	case 4:
		command = "grep" + g.space() + Pick(g, "-n foo", "-e a -e b", "--color foo", "-A 1 foo", "-i -- foo", "foo") + g.words(2)
	case 5:
		command = Pick(g, "[", "test") + g.space() + Pick(g, "-f", "-d", "-n", "!", "-z") + g.space() + g.word()
		if strings.HasPrefix(command, "[") {
			command += g.space() + "]"
		}
	case 6:
		command = Pick(g, "ls -la", "pwd", "git status", "git log -n 3", "git -C sub diff --stat", "go vet ./...", "find . -name a", "sed -n p", "sort -k 2", "uniq -c",
			"head -n 5", "wc -l", "cut -d : -f 1", "tr a b", "true", "false", "cd sub", "rg -n foo", "date +%s", "diff -u a b", "basename a", "tree -L 2", "sleep 0")
		if g.Chance(3) {
			command += g.words(2)
		}
	case 7:
		command = Pick(g, "ls", "cat", "grep", "wc", "head") + g.words(3)
	case 8:
		return "[[" + g.space() + Pick(g, "-f a", "a == b", "a = 'x y'", "a < b", "-n \"$x\"", "! -d src", "( a == a )", "a =~ b", "a =~ ^(a|b)$", "a && b", "a == @(a|b)", "-n $(pwd)", "a == \"]]\"", "a =~ [[:space:]]") + g.space() + "]]"
	case 9:
		command = Pick(g, "env", "command", "nice", "nice -n 5", "timeout 5", "time", "time -p", "stdbuf -oL", "env LC_ALL=C", "timeout -k 1 5", "command --", "env --", "nice -n $x") + g.space() + g.simpleProgram() + g.words(2)
	default:
		command = g.simpleProgram() + g.words(3)
	}
	if g.Chance(8) {
		command = Pick(g, "LC_ALL=C", "LANG=", "TZ='UTC'", `CI="1"`, "LC_ALL=a\\ b", "LC_ALL=$x", "NO_COLOR=1") + g.space() + command
	}
	if g.Chance(5) {
		command = g.redirected(command)
	}
	return command
}

func (g *Generator) simpleProgram() string {
	return Pick(g, "ls", "cat", "wc", "pwd", "sort", "head", "tail", "basename", "dirname", "cut", "echo", "l\\\ns", "rm", "tr")
}

// redirected adds a redirection.
func (g *Generator) redirected(command string) string {
	switch g.IntN(8) {
	case 0:
		return command + g.space() + Pick(g, "2>&1", ">&2", "2>&-", "<&-", ">&1-", "3>&1")
	case 1:
		return command + g.space() + Pick(g, ">", ">>", "2>", "&>", ">|", "&>>", "<>", ">&", "1>", "9>") + Pick(g, "", g.space()) + Pick(g, "/dev/null", "/dev/null", "out.log", `"out.log"`, "'/dev/null'", "out.lo\\\ng")
	case 2:
		return command + g.space() + "<" + g.space() + Pick(g, "names.txt", "bar.txt", "/dev/null", "<(pwd)")
	case 3:
		return command + g.space() + "<<<" + g.word()
	case 4:
		return ">/dev/null" + g.space() + command
	default:
		return g.document(command)
	}
}

// document adds a here-document, or two.
func (g *Generator) document(command string) string {
	end := g.End()
	quoted := g.Chance(2)
	body := Pick(g, "rm x", "a\nb", "a\\", "a \\", "a \\\n"+end, "\t\\\n"+end, " \\\n"+end+"\nrm x", "a $ \\\n(rm x)", "`pwd`", "$(pwd)", "$x", "'", `"`, "\\\n"+end, "x\\\n"+end+"\nrm x", " "+end, "\t"+end+" ", end+" ", end+")", "#", "}", "\\$(rm x)")
	word := end
	if quoted {
		body += Pick(g, "", "$(rm x)", "`rm x`", "$", "${", "$((")
		word = Pick(g, "'"+end+"'", `"`+end+`"`, `\`+end, end[:1]+`''`+end[1:], "$'"+end+"'", end+`\`+"\n")
	}
	operator := Pick(g, "<<", "<<", "<<-", "<< ", "<<\\\n", "<< \\\n")
	first := command + g.space() + operator + word
	if g.Chance(4) {
		first += Pick(g, " | cat", "; pwd", " && ls", " >/dev/null", " # rm x", " | wc -l")
	}
	if strings.HasPrefix(operator, "<<-") && g.Chance(2) {
		end = "\t" + end
	}
	return first + "\n" + body + "\n" + end + Pick(g, "\n", "\n", "\n", "")
}

// list is several commands.
func (g *Generator) list() string {
	if g.depth > 3 {
		return g.simple()
	}
	g.depth++
	defer func() { g.depth-- }()
	var line strings.Builder
	line.WriteString(g.command())
	for range Pick(g, 0, 0, 0, 1, 1, 2) {
		line.WriteString(Pick(g, "; ", ";", " && ", "&&", " || ", " | ", "|", " & ", "\n", " |& ", "\n\n", " # rm x\n", " #'\n", " ;\\\n", " &&\n", " |\n# rm x\n") + g.command())
	}
	return line.String() + Pick(g, "", "", "", "", ";", " &", "\n", " # rm x", " #\\\n", " ")
}

// command is a simple or a compound one.
func (g *Generator) command() string {
	if g.depth > 3 || !g.Chance(5) {
		return g.simple()
	}
	l := g.nested
	switch g.IntN(16) {
	case 0:
		return "{ " + l() + "\n}"
	case 1:
		return "(" + l() + "\n)"
	case 2:
		return "if " + l() + "\nthen " + l() + Pick(g, "\nelse pwd", "\nelif ls\nthen pwd", "") + "\nfi"
	case 3:
		return "while false; do " + l() + "\ndone"
	case 4:
		return "until true; do " + l() + "\ndone"
	case 5:
		return "for v in a" + g.words(2) + Pick(g, "; ", "\n") + "do " + l() + "\ndone"
	case 6:
		return "case " + g.word() + " in " + Pick(g, "a", "(a", "a|b", "*", "'('", "in", "[[:alpha:]]") + ") " + l() + Pick(g, "\n;;", "\n;&", "\n;;&", "\n") + " *) pwd;; esac"
	case 7:
		return "! " + l()
	case 8:
		return "time " + l()
	case 9:
		return Pick(g, "f() { ", "function f { ", "function f() { ") + l() + "\n}; f"
	case 10:
		return Pick(g, "coproc ", "select v in a; do ", "let x=1 ", "((1+2)) ", "for ((;0;)); do ", "declare a=1 ", "alias ls=rm\n", "a=(1 2) ", "export x=1; ", "shopt -s extglob\n") + l() + Pick(g, "", "\ndone")
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
func (g *Generator) expansion() string {
	operator := Pick(g, "y:-", "y-", "x:+", "x+", "y:-a", "x+'a'")
	if g.Chance(4) {
		return "${" + operator + g.word() + "}"
	}
	operand := Pick(g, "'$(%)'", "'$(%)", "a'$(%)'b", "'`%`'", `\'$(%)\'`, `'"$(%)"'`, `"'$(%)'"`, "$'$(%)'", "'}'$(%)'", "'a'", "'", "'}'", "a")
	return "${" + operator + strings.ReplaceAll(operand, "%", g.ran()) + "}"
}

// opened returns a here-document that ends inside an expansion or a substitution.
func (g *Generator) opened() string {
	end := g.End()
	within := Pick(g, "a\n", "\n", "") + end + "\n" + g.ran() + "\n"
	body := Pick(g, "${y:-\n%}", "${x+\n%}", "${y:-'\n%'}", "${y:-\"\n%\"}", "a ${y:-$(ls\n%)}", "$(ls\n%)", "`ls\n%`", "$((1+\n%1))",
		"$(echo '%')", "$(echo a '\n%')", "$(echo \"%\")", "`echo '%'`", "a $(ls; echo '%')", "$(ls <<'X'\n%X\n)")
	return "cat " + Pick(g, "<<", "<<-") + end + "\n" + strings.ReplaceAll(body, "%", within) + "\n" + end + "\n"
}

// ran returns a command, which the lists of the cases may or may not allow.
func (g *Generator) ran() string { return Pick(g, "rm x", "rm x", "rm x", "rm", "ls") }

// disputed is a line with a construct that has been read otherwise than by bash, as it
// is or among others.
func (g *Generator) disputed() string {
	command := g.ran()
	line := Pick(g,
		func() string {
			return Pick(g, "echo ", "printf ", "echo a ", "[[ -n ", "cat <<< ") + `"` + Pick(g, "", "a", "a ") + g.expansion() + `"`
		},
		func() string { return "cat <<E\n" + Pick(g, "", "a ", "'") + g.expansion() + "\nE\n" },
		g.opened, g.opened,
		func() string {
			return "ls " + Pick(g, ">&", "2>&", "<&") + Pick(g, " ", "") + Pick(g, "'o$(%)'", `o\$\(%\)`, "'`%`'")
		},
		func() string { return Pick(g, "!", "!", "!", "@", "?", "*", "+") + "(%)" },
		func() string {
			return Pick(g, "ls && !(%)", "if !(%)\nthen ls; fi", "ls; !(%)", "! !(%)", "{ !(%)\n}", "time !(%)", "!(%) | ls", "!(ls|%)")
		},
	)()
	line = strings.ReplaceAll(line, "%", command)
	if strings.HasPrefix(line, "[[") {
		line += " ]]"
	}
	if g.Chance(3) {
		line = Pick(g, "%\nls", "ls; %", "{ %\n}", "ls && %", "( %\n)", "if ls\nthen %\nfi", "echo $( %\n)")
		line = strings.ReplaceAll(line, "%", g.disputed())
	}
	if g.Chance(5) {
		line = g.edit(line)
	}
	return line
}

// value returns the value of a variable, a pattern or another command: a harmless word, or one
// that turns a harmless command into another.
func (g *Generator) value() string {
	return Pick(g, "a", "a", "names.txt", "src", "x", "rm", "rm x", "-delete", "-exec", "-of", "--output=f", "-o f", ".env", "../secret", "/etc/passwd", "touch f", "'*'",
		"'$(rm x)'", "'; rm x'", "'>f'", "-rf .", "--files0-from=.env", "-f.env", "-C .. status", "bash", "-c", "sudo", "LD_PRELOAD=a", "*", ".*", "src/*", "{a,.env}", "~", "''", "-print0", "{}")
}

// Deferred returns a line whose words are known only when it runs.
func (g *Generator) Deferred() string {
	line := Pick(g, `x=<V>; <P> $x`, `x=<V>; <P> "$x" <V>`, `x=<P>; $x <V>`, `for v in <V> <V>; do <P> $v; done`, `for v in *; do <P> <V> "$v"; done`, `echo <V> | xargs <P>`, `echo <V> | xargs -n1 <P> <V>`,
		`printf '%s\n' <V> <V> | xargs -I{} <P> {}`, `printf '<V>\0' | xargs -0 <P>`, `find . -name '<V>' -exec <P> {} +`, `find . -type f -exec <P> <V> {} \;`, `find . -name '<V>' -exec <P> {} \; -print`, `find <V> -name a`, `<P> $(echo <V>)`, `<P> $(<P> <V>)`,
		`git ls-files | while read v; do <P> "$v"; done`, `while IFS= read -r v; do <P> "$v"; done <names.txt`, `echo . | while read PATH; do <P> <V>; done`, `IFS=<V> read v w <names.txt; <P> $v "$w"`,
		`while read -r v; do find . -name "$v"; done <<< <V>`, `set -- <V> <V>; <P> "$@"`, `read v <<< <V>; <P> $v`, `printf '%s\n' <V> | while read -r v; do <P> $v; done`, `PATH=.; <P> <V>`, `PATH=<V> <P>`, `IFS=:; x=<V>:<V>; <P> $x`, `cd <V> && <P> *`, `<P> {<V>,<V>}`, `<P> *`, `<P> <V>*`, `<P> .[a-e]*`,
		`a=(<P> <V>); "${a[@]}"`, `a=(<V> <V>); <P> "${a[@]}"`, `x=<V>; <P> ${x:-<V>} ${x#-}`, `x=1; <P> $((x+1))`, `export X=<V>; <P>`, `x=<V>; <P> <"$x"`, `x=<V>; <P> <$x`, `<P> <V> >/dev/null`, `x=f; <P> <V> >$x`, `diff <(<P> <V>) <(<P> $x)`,
		`<P> $(cat names.txt)`, `cat names.txt | xargs <P>`, `while read -r v; do <P> $v; done <names.txt`, `x=.e; <P> ${x}nv`, `x=nv; <P> src/.e$x`, `x=te; find . -dele$x`, `find . $(echo -del)ete`,
		`x=<V>; find . $x`, `find . $(echo <V>)`, `cd src; <P> ../$(echo names.txt) $(ls -a)`, `<P> $(ls -a)`, `ls -a | xargs <P>`, `find . -name '<V>' | xargs <P>`, `find . -type f | xargs -n1 <P>`,
		`f() { <P> "$1"; }; f <V>`, `case <V> in *) <P> $x;; esac`, `eval <P> <V>`, `x='<P> <V>'; $x`, `x=<V>; [ -f $x ] && <P> $x`, `[[ $x == <V> ]] || <P> $y`, `<P> <V> | <P> $x | xargs <P>`, `IFS=<V> <P> $x`, `HOME=<V>; <P> ~`, `cat <<E | xargs <P>
<V>
E`)
	return placeholder.ReplaceAllStringFunc(line, func(of string) string {
		if of == "<V>" {
			return g.value()
		}
		return Pick(g, "cat", "cat", "cat", "ls", "echo", "head", "wc", "grep a", "find", "git status", "git diff", "tail -n 1", "rm", "touch")
	})
}

// placeholder marks the place of a program or a value in the lines of deferred.
var placeholder = regexp.MustCompile(`<[PV]>`)

// tokens are the tokens that edits insert: they open, close, quote and separate.
//
//nolint:gochecknoglobals // a table
var tokens = []string{
	"'", `"`, "`", `\`, "\\\n", "\n", ";", "&", "|", "&&", "||", "(", ")", "{", "}", "{ ", "; }", "#", " #", "$", "$(", "$((", "))", "${", "${x:-", "$'", `$"`,
	"<<E\n", "\nE\n", "<<'E'\n", "<<-E\n", "<(", ">(", "<", ">", ">&", "&>", "<<<", "[[ ", " ]]", "[", "]", "!", " ! ", "=", "+=", "*", "?", "~", "^", "%", ",", "..",
	" rm x ", "; rm x;", "\nrm x\n", "|rm x", "&rm x", "$(rm x)", "`rm x`", " if ", " then ", " fi", " do ", " done", " case a in a)", ";;", " esac", " time ", " function ",
	" coproc ", " for v in ", "{a,", "a()", "a[", "]=1 ", "/", "-", "--", "1>", "2", "0", "@(", "!(", "+(", " in ", "\t", "  ", "\\\\", `\"`, `\'`, "\\`", "\\$", "a=", "LC_ALL=", "((", "$[", "|&", ";&",
}

// edit breaks a line at one to six places.
func (g *Generator) edit(line string) string {
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
			line = line[:at] + Pick(g, tokens...) + line[at:]
		}
	}
	return line
}

// soup is a line of tokens and commands without any order.
func (g *Generator) soup() string {
	var b strings.Builder
	b.WriteString(Pick(g, "echo ", "ls ", "cat ", "echo \"", "echo '", "cat <<E\n", "[[ ", "case a in a) ", "echo \"${x:-", "echo `", "echo $("))
	for range 2 + g.IntN(10) {
		b.WriteString(Pick(g, tokens...))
		if g.Chance(2) {
			b.WriteString(Pick(g, " echo a ", " ls ", "a", " b", "x", " ", "cat", "E"))
		}
	}
	return b.String()
}

// Line returns a line of any kind. rows are whole lines to begin with, at least one.
func (g *Generator) Line(rows []string) string {
	g.depth, g.ends = 0, 0
	switch g.IntN(13) {
	case 0, 1, 2:
		return g.list()
	case 10:
		return g.disputed()
	case 11:
		return g.Deferred()
	case 12:
		return g.edit(g.Deferred())
	case 3, 4, 5:
		return g.edit(g.list())
	case 6:
		return g.soup()
	case 7:
		return g.edit(g.edit(Pick(g, rows...)))
	default:
		return g.edit(Pick(g, rows...))
	}
}
