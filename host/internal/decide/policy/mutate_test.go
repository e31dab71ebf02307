package policy

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/internal/shellfuzz"
	"github.com/toolhost/toolhost/internal/soak"
)

// mutant is a line on its way.
type mutant struct {
	text string
	// simple says that a word before it makes a command of it.
	simple bool
	// literal says that no mutator hid the program's name: a rule that denies it finds
	// it still.
	literal bool
}

// mutator writes a command in another way, without making it harmless.
type mutator struct {
	name string
	// literal says that it leaves the denied program readable, that is, as a word of a
	// command whose value is known before anything runs.
	literal bool
	apply   func(g *shellfuzz.Generator, m mutant) mutant
}

func quoteSingle(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func quoteBack(text string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(text) + "`"
}

// around puts a line into one of several frames, at the place of %s. No frame ends at the line's
// own end, where a comment or a document may end.
func around(literal bool, name string, frames ...string) mutator {
	return mutator{name, literal, func(g *shellfuzz.Generator, m mutant) mutant {
		frame := strings.ReplaceAll(shellfuzz.Pick(g, frames...), "END", g.End())
		text := strings.NewReplacer("%s", m.text, "%q", quoteSingle(m.text), "%b", quoteBack(m.text)).Replace(frame)
		// In backquotes, some backslashes are quoted and others are not: rows where that leaves
		// a difference are asked about.
		literal := !strings.Contains(frame, "%b") || !strings.ContainsAny(m.text, "\\`")
		return mutant{text, false, m.literal && literal}
	}}
}

// before puts words in front of a command, which becomes one of sh -c if it is not
// simple.
func before(literal bool, name string, words ...string) mutator {
	return mutator{name, literal, func(g *shellfuzz.Generator, m mutant) mutant {
		if !m.simple {
			m.text = "sh -c " + quoteSingle(m.text)
		}
		// In front of an assignment, a wrapper would take that for the program.
		return mutant{shellfuzz.Pick(g, words...) + " " + m.text, name == "wrappers", m.literal}
	}}
}

// inLetters changes a line between two letters.
func inLetters(literal bool, name string, signs ...string) mutator {
	return mutator{name, literal, func(g *shellfuzz.Generator, m mutant) mutant {
		letter := func(i int) bool { return i >= 0 && i < len(m.text) && m.text[i] >= 'a' && m.text[i] <= 'z' }
		var places []int
		for i := range m.text {
			if letter(i-1) && letter(i) && !letter(i-2) { // before the second letter of a word
				places = append(places, i)
			}
		}
		if len(places) > 0 {
			at := shellfuzz.Pick(g, places...)
			// In quotes, signs are letters; and a word of the language with quotes is a program.
			word := strings.FieldsFunc(m.text[at-1:], func(c rune) bool { return c < 'a' || c > 'z' })[0]
			m.literal = m.literal && !strings.ContainsAny(m.text[:at], `'"\`) && !strings.Contains(keywords, " "+word+" ")
			m.text = m.text[:at] + shellfuzz.Pick(g, signs...) + m.text[at:]
		}
		return m
	}}
}

// firstWord writes the first word in another way.
func firstWord(literal bool, name string, frames ...string) mutator {
	return mutator{name, literal, func(g *shellfuzz.Generator, m mutant) mutant {
		word, rest, _ := strings.Cut(m.text, " ")
		if !m.simple || word == "" || strings.ContainsAny(word, "'\"`\\$=*?[](){};&|<>~#\n") {
			return m
		}
		m.text = strings.ReplaceAll(shellfuzz.Pick(g, frames...), "%s", word) + " " + rest
		return m
	}}
}

// keywords are the words of the language in the frames below.
const keywords = " case coproc do done elif else esac fi for function if in select then time until while "

// mutators are all mutators. The literal ones keep a deny row denied.
//
//nolint:gochecknoglobals // a table
var mutators = []mutator{
	around(true, "lists", "ls; %s", "%s\nls", "true && %s", "false || %s", "ls | %s", "{ %s\n} | cat", "ls & %s", "ls\n\n\t%s\n", "! %s", "ls |& %s", "{ %s\n} && ls", "( %s\n) &"),
	around(true, "groups", "{ %s\n}", "( %s\n)", "if %s\nthen ls; fi", "if ls; then %s\nfi", "if false; then ls; elif true; then ls; else %s\nfi", "while %s\ndo ls; done",
		"until true; do %s\ndone", "for i in 1; do %s\ndone", "case a in (a) %s\n;; esac", "case a in b) ls ;;& *) %s\nesac", "time %s", "time -p { %s\n}", "{ ls; { %s\n}; }", "if ls\nthen\n%s\nfi"),
	around(true, "other constructs", "f() { %s\n}; f", "function f { %s\n}", "coproc { %s\n}", "select i in a; do %s\ndone", "for ((;;)); do %s\ndone", "[[ -n $( %s\n) ]]", "((1)) && { %s\n}"),
	around(true, "substitutions", "echo $( %s\n)", `echo "$( %s`+"\n"+`)"`, `echo "a $(echo "$( %s`+"\n"+`)")"`, "cat <( %s\n)", "cat < <( %s\n)", "ls > >( %s\n)", `cat <<< "$( %s`+"\n"+`)"`, "echo ${x:-$( %s\n)}",
		`echo "${x:-$( %s`+"\n"+`)}"`, "LC_ALL=$( %s\n) ls", "a=$( %s\n)", "a=($( %s\n))", "cat <<END\n$( %s\n)\nEND", "a[$( %s\n)]=1", "echo %b", `echo "$(( $( %s`+"\n"+`) ))"`, "$( %s\n)", "cat $(< $( %s\n))", "case $( %s\n) in a) ls;; esac", "for i in $( %s\n); do ls; done"),
	around(true, "shells", "sh -c %q", "bash -c %q", "bash -ec %q", "eval %q", "env bash -c %q", "timeout 5 sh -c %q", "find . -exec sh -c %q ';'"),
	around(false, "hidden shells", "echo %q | sh", "bash <<< %q", "bash <<'END'\n%s\nEND\n", "bash -c \"$(echo %q)\"", "source <(echo %q)", "x=%q; $x", "trap %q EXIT", "alias ls=%q\nls", "xargs -I{} sh -c {} <<< %q",
		"python3 -c %q", "echo $'\\x41' | bash -c %q", `$"sh" -c %q`, "env -S %q", "printf -v x %q"),
	before(true, "wrappers", "env", "nice", "nice -n 5", "timeout 5", "nohup", "command", "setsid", "stdbuf -oL", "time -p", "env LC_ALL=C", "env -- ", "timeout -k 1 5s", "xargs", "xargs -n 1", "xargs -i", "exec", "env A=1", "command -p", "nice nohup"),
	before(false, "elements", "a[0]=1", "a[$x]=1", "a[0]+=1", "a=(1)"),
	before(true, "assignments", "LC_ALL=C", "A=1", "PATH=.", "LC_ALL=$x", "LD_PRELOAD=./x.so", "LC_ALL=C TZ=UTC", "a+=1", "IFS=x", "CI='1'"),
	around(true, "redirections", "{ %s\n} >/dev/null", "{ %s\n} 2>&1", ">/dev/null; %s", "{ %s\n} >>f", "{ %s\n} &>f", "{ %s\n} <<< x", "{ %s\n} <<END\nx\nEND\n", "{ %s\n} {fd}>/dev/null", "{ %s\n} 3<>f", "{ %s\n} <names.txt", "{ %s\n} >|/dev/null"),
	before(true, "redirections in front", ">/dev/null", "2>&1", "<names.txt", "2>/dev/null", ">f", "<<< x", "99999999999999999999>/dev/null"),
	around(true, "comments", "%s # ls", "ls # x\n%s", "# ls\n%s", "ls #'\n%s\n#'", "ls #\"$(\n%s\n#)\"", "%s #`"),
	around(true, "space", " %s", "\t%s", "\n%s", "%s ", "%s\n", "\\\n%s", "  \\\n %s", "%s \\\n", "\n\n%s\n\n"),
	around(true, "beside quotes", "echo '; ls'; %s", "echo \"'\"\n%s", `echo \"; %s`, "echo $'\\''\n%s", "echo '' \"\" \\'; %s", "echo \"${x:-'}'}\"\n%s", "echo a\\\\\n%s", "cat <<'END'\n'\nEND\n%s", "cat <<-END\n\tEND\n%s"),
	// Parsers take these for other things than bash does, so that what they hold cannot
	// be known: it is asked about.
	around(false, "disagreements", "ls # x\\\n%s", "%s #\\\n", "cat <<END\n\\\nEND\n%s\nEND", "echo \"$\\\n( %s\n)\"", "cat <<END\n\"`\nEND\n%s", "ls | time %s"),
	inLetters(true, "quotes in a word", "''", `""`, `\`, "\\\n"),
	inLetters(false, "expansions in a word", "$''", "$x", "${x}", "$(true)", "``", "*", "{,}", `$""`, "?(a)", "[a]", "$'\\x61'"),
	inLetters(false, "characters that are not seen", "\r", "\x00", "\v", "\f", "\u00a0", "\u200b", "\u202e", "\u2066", "\ufeff", "\u2028", "\x1b", "\x7f", "\xff", "\u0085", "\u3000"),
	firstWord(true, "a quoted program", "'%s'", `"%s"`, `\%s`, "$'%s'", "%s''", `""%s`, "/usr/bin/%s", "./%s", "/bin/../bin/%s"),
	firstWord(false, "a program that is computed", "$(echo %s)", "`echo %s`", "${x:-%s}", "{%s,}", "%s*", `$"%s"`, "~/%s", "[%s]", `"$x"%s`, "$'\\x20'%s", "@( %s)", "${x:-'%s'}"),
	{"every blank", false, func(g *shellfuzz.Generator, m mutant) mutant {
		blank := shellfuzz.Pick(g, "\t", "  ", " \\\n", "\\\n ", " \t ", "${IFS}", "\u00a0", "\r", "\n")
		if blank == "${IFS}" && strings.Contains(m.text, "<<<") {
			blank = " " // otherwise the rest is the text of the document
		}
		m.text = strings.ReplaceAll(m.text, " ", blank)
		return m
	}},
	{"carriage returns", false, func(_ *shellfuzz.Generator, m mutant) mutant {
		m.text = strings.ReplaceAll(m.text, "\n", "\r\n") + "\r"
		return m
	}},
}

// incomplete are rows that are asked about because they are not complete commands. An addition
// may complete one to a harmless command, so only mutators that change words apply to them.
func incomplete(text string) bool {
	return strings.TrimSpace(text) == "" || strings.HasPrefix(text, "#") || strings.HasSuffix(text, "&&")
}

// No way of writing a command that is asked about, or denied, is allowed.
func TestMutationsNeverAllow(t *testing.T) {
	const rounds, least = 240, 10_000
	seed := soak.Seed(t)
	table, lists := readShellCases(t)
	g := shellfuzz.New(seed)
	seen := map[string]bool{}
	verdicts := map[Verdict]int{}
	literal := 0
	for _, row := range table.Cases {
		if row.Expect == Allow || incomplete(row.Command) {
			continue
		}
		word, _, _ := strings.Cut(row.Command, " ")
		simple := !strings.ContainsAny(row.Command, ";&|(){}\n") && word != "while" && word != "[["
		for round := range rounds {
			m := mutant{row.Command, simple, true}
			var by []string
			for range 1 + round%3 {
				mutate := shellfuzz.Pick(g, mutators...)
				m = mutate.apply(g, m)
				m.literal = m.literal && mutate.literal
				by = append(by, mutate.name)
			}
			if seen[m.text] || m.text == row.Command {
				continue
			}
			seen[m.text] = true
			line := command.Parse(m.text, command.Options{Workspace: table.Policy.Workspace, Assign: lists.Assign, WriteRedirects: lists.WriteRedirects})
			d, _ := lists.judge(Command{Line: line}, Level{})
			verdicts[d.Verdict]++
			least := Ask
			if row.Expect == Deny && m.literal {
				least = Deny
				literal++
			}
			if d.Verdict < least {
				t.Errorf("%s, %q: %q by %q is %v, want at least %v", row.ID, row.Command, m.text, by, d.Verdict, least)
			}
		}
	}
	t.Logf("%d mutations by %d mutators: %v; %d of a denied program that can be read", len(seen), len(mutators), verdicts, literal)
	if len(seen) < least || literal < least/100 {
		t.Errorf("%d mutations, %d of a denied program that can be read; want %d and %d", len(seen), literal, least, least/100)
	}
}
