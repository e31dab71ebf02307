package command

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toolhost/toolhost/internal/lazyregexp"
)

// This file lists every construct that bash may read differently than the parser. Each
// has a shape that both are known to read alike; any other shape is refused. A line
// with a refused construct is [Line.Unread]: no list, rule, mode or grant lets it run
// without asking. Both readers agree up to the first such construct, so the tree shows
// that one as bash sees it; nothing after it is trusted. Add new constructs here.

// Shapes that both readers read alike.
var (
	plainExpansion  = lazyregexp.New(`^\$\{[#!]?[\w@*#?!-]*(\[[\w@*]+\])?[\w./:,=@%+^*?#~!-]*\}$`)
	plainArithmetic = lazyregexp.New(`^(\$\(\(|\$\[|\(\()([\w \t;,+*/%<>=!&|?:^~-]|\$[A-Za-z_])*(\)\)|\])$`)
	plainIndex      = lazyregexp.New(`^[\w@*-]+$`)
	plainNumber     = lazyregexp.New(`^"?(-?\w+|\$\w+|\$\{\w+\}|\$#)"?$`)
	plainMatch      = lazyregexp.New(`^([\w./:,=@%+^*?~-]|'[^'\\]*'|"([^"$` + "`" + `\\]|\$[A-Za-z_])*"|\$[A-Za-z_])*$`)
	plainDelimiter  = lazyregexp.New(`^(\\?[\w.-]+|'[\w.-]+'|"[\w.-]+")$`)
	plainDocument   = lazyregexp.New("^([^$`\\\\]|\\$[A-Za-z_])*$")
	// In a substitution, also in a here-document: older shells find its end by
	// counting quotes and parentheses.
	plainNested     = lazyregexp.New("^[^$`\\\\'\"(){}<>#]*$")
	plainDescriptor = lazyregexp.New(`^(\d{1,4}|\{\w+\})$`)
	plainTarget     = lazyregexp.New(`^[\w./-]+$`)
	plainFunction   = lazyregexp.New(`^[\w.-]+$`)
	timeOption      = lazyregexp.New(`^time[ \t]+-`)
	// Options of declare that evaluate values.
	evaluating = lazyregexp.New(`^[-+]\w*[aAin]`)
)

// characters refuses characters that one of the readers may skip, and reports those that an
// approver would not see.
func (r *reader) characters(text string) {
	if !utf8.ValidString(text) {
		r.line.unread(Medium, "it is not valid UTF-8")
		return
	}
	told := false
	for _, c := range text {
		switch {
		case c == '\n', c == '\t', c >= ' ' && c < 0x7f:
		case c < ' ' || c == 0x7f:
			r.line.unread(Medium, "it holds the character %U, which cannot be seen or told apart", c)
			return
		case !told && (unicode.IsSpace(c) || unicode.IsControl(c) || !unicode.IsPrint(c)):
			r.line.problem(Medium, "it holds the character %U, which cannot be seen or told apart", c)
			told = true
		}
	}
}

// continuations refuses lines that end with a backslash, except after white space: in a comment,
// which the backslash does not continue; in a here-document, whose end may follow; and within an
// operator, as in "$\
// (rm x)".
func (r *reader) continuations(text string) {
	if strings.HasSuffix(text, `\`) {
		r.line.unread(High, "a backslash at the end, which bash keeps")
	}
	documents := strings.Contains(text, "<<")
	for from := 0; ; {
		at := strings.Index(text[from:], "\\\n")
		if at < 0 {
			return
		}
		at += from
		line := text[strings.LastIndexByte(text[:at], '\n')+1 : at]
		if documents || strings.Contains(line, "#") || line != "" && strings.TrimRight(line, " \t") == line {
			r.line.unread(High, "a backslash at the end of a line, in the middle of a word, a comment or a document")
			return
		}
		from = at + 2
	}
}

// disagreements refuses the constructs in a tree that bash may read differently.
func (r *reader) disagreements(file *syntax.File) {
	var open []bool // by node around this one: whether it is a substitution
	nested := 0
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			last := len(open) - 1
			if open[last] {
				nested--
			}
			open = open[:last]
			return true
		}
		if why := r.disagreement(n, nested > 0); why != "" {
			r.line.unread(High, "%s", why)
		}
		substitution := false
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			substitution = true
			nested++
		}
		open = append(open, substitution)
		return true
	})
}

// disagreement returns the construct that bash may read differently; "" if there is none. nested
// reports that the node is in a substitution.
func (r *reader) disagreement(n syntax.Node, nested bool) string {
	switch n := n.(type) {
	case *syntax.Comment:
		return r.comment(n)
	case *syntax.Stmt:
		if n.Coprocess || n.Disown {
			return "a background command that bash does not know"
		}
	case *syntax.CoprocClause:
		return "a coprocess"
	case *syntax.LetClause:
		return "let, which evaluates its words"
	case *syntax.ExtGlob:
		return "an extended pattern, or a subshell behind !, @, ?, * or +"
	case *syntax.CmdSubst:
		switch source := r.source(n); {
		case n.TempFile || n.ReplyVar:
			return "a substitution that runs in the shell itself"
		case n.Backquotes:
			return "backquotes"
		case !strings.HasPrefix(source, "$(") || strings.HasPrefix(source, "$(("):
			return "arithmetic, or a substitution with a subshell"
		}
	case *syntax.Subshell:
		if source := r.source(n); !strings.HasPrefix(source, "(") || strings.HasPrefix(source, "((") {
			return "arithmetic, or a subshell in another one"
		}
	case *syntax.ParamExp:
		if !n.Short && !plainExpansion().MatchString(r.source(n)) {
			return "an expansion ${...} that holds more than plain letters, digits and signs"
		}
	case *syntax.ArithmExp, *syntax.ArithmCmd:
		return r.arithmetic(r.source(n))
	case *syntax.ForClause:
		if _, ok := n.Loop.(*syntax.CStyleLoop); ok {
			return r.arithmetic(r.source(n.Loop))
		}
	case *syntax.Assign:
		if n.Index != nil && !plainIndex().MatchString(r.source(n.Index)) {
			return "an index of an array that is not plain"
		}
	case *syntax.ArrayElem:
		if n.Index != nil && !plainIndex().MatchString(r.source(n.Index)) {
			return "an index of an array that is not plain"
		}
	case *syntax.DeclClause:
		return r.declares(n)
	case *syntax.FuncDecl:
		if n.Name == nil || !plainFunction().MatchString(n.Name.Value) {
			return "a function whose name is not plain"
		}
	case *syntax.UnaryTest:
		if (n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar) && !plainFunction().MatchString(r.source(n.X)) {
			return "a test of a variable whose name is not plain"
		}
	case *syntax.BinaryTest:
		return r.compares(n)
	case *syntax.TimeClause:
		if timeOption().MatchString(r.source(n)) {
			return "options of time"
		}
	case *syntax.BinaryCmd:
		if _, timed := n.Y.Cmd.(*syntax.TimeClause); timed && (n.Op == syntax.Pipe || n.Op == syntax.PipeAll) {
			return "the program time, in a pipe" // there it is not a keyword
		}
	case *syntax.Redirect:
		return r.redirection(n, nested)
	}
	return ""
}

// comment refuses a comment that bash reads as the rest of a word, as in <<'E'# rm.
func (r *reader) comment(c *syntax.Comment) string {
	before := r.text[:min(int(c.Hash.Offset()), len(r.text))]
	if at := len(before) - 1; at >= 0 && (strings.IndexByte(" \t\n;&|(", before[at]) < 0 || at > 0 && before[at] != '\n' && before[at-1] == '\\') {
		return "what may be a comment or the rest of a word"
	}
	return ""
}

// arithmetic refuses parentheses, which may end it where bash begins a subshell, and everything
// that expands or quotes.
func (r *reader) arithmetic(source string) string {
	if !plainArithmetic().MatchString(source) {
		return "arithmetic that is not plain"
	}
	return ""
}

// declares refuses words that bash evaluates again: an index, a list, or the value of a variable
// that is a number, an array or a reference.
func (r *reader) declares(d *syntax.DeclClause) string {
	for _, a := range d.Args {
		source := r.source(a)
		if evaluating().MatchString(source) || strings.ContainsAny(source, "[(`") || a.Naked && a.Name == nil && !r.evaluate(a.Value).static {
			return d.Variant.Value + ", which evaluates its words"
		}
	}
	return ""
}

// compares refuses patterns that are not plain, and numbers that may be expressions.
func (r *reader) compares(t *syntax.BinaryTest) string {
	switch t.Op { //nolint:exhaustive // the others look at files, or join tests
	case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch, syntax.TsReMatch:
		if !plainMatch().MatchString(r.source(t.Y)) {
			return "a pattern in [[ ]] that is not plain"
		}
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		if !plainNumber().MatchString(r.source(t.X)) || !plainNumber().MatchString(r.source(t.Y)) {
			return "a number in [[ ]] that is not plain"
		}
	}
	return ""
}

// redirection refuses unusual descriptors, and here-documents whose end the readers may see at
// different lines: bash looks for it line by line, whatever is open.
func (r *reader) redirection(d *syntax.Redirect, nested bool) string {
	if d.N != nil && !plainDescriptor().MatchString(d.N.Value) {
		return "a descriptor that is not plain"
	}
	switch d.Op { //nolint:exhaustive // the others name a file
	case syntax.DplIn, syntax.DplOut:
		if !plainTarget().MatchString(r.source(d.Word)) { // bash may expand it twice
			return "a copy of a descriptor that is not plain"
		}
		return ""
	case syntax.Hdoc, syntax.DashHdoc:
	default:
		return ""
	}
	delimiter, body := r.source(d.Word), ""
	if d.Hdoc != nil {
		body = r.source(d.Hdoc)
	}
	shape := plainDocument
	switch quoted := strings.ContainsAny(delimiter, `'"\`); {
	case !plainDelimiter().MatchString(delimiter):
		return "a here-document whose delimiter is not one plain word"
	case nested:
		shape = plainNested
	case quoted:
		return ""
	}
	if !shape().MatchString(body) || body == "" && d.Hdoc != nil && len(d.Hdoc.Parts) > 0 {
		return "a here-document that holds more than plain text"
	}
	return ""
}

// rereads are builtins that change how the shell reads the text after them.
//
//nolint:gochecknoglobals // a table
var rereads = set("alias unalias shopt enable hash")

// evaluates returns which builtin evaluates its words again, as names of variables with an index:
// read 'a[$(rm x)]'.
func evaluates(name string, words []word) string {
	indexed := func(w word) bool { return !w.static || strings.Contains(w.text, "[") }
	option := func(w word) bool { return strings.HasPrefix(w.text, "-v") || w.text == "-R" }
	words = words[1:]
	switch name {
	case "read", "unset", "getopts", "mapfile", "readarray", "wait":
		if slices.ContainsFunc(words, indexed) {
			return name + ", which evaluates its words"
		}
	case "printf":
		if len(words) > 0 && option(words[0]) && slices.ContainsFunc(words[:min(2, len(words))], indexed) {
			return name + " -v, which evaluates its words"
		}
	case "test", "[":
		if slices.ContainsFunc(words, option) && slices.ContainsFunc(words, indexed) {
			return name + " -v, which evaluates its words"
		}
	case "declare", "typeset", "local", "export", "readonly", "let":
		if slices.ContainsFunc(words, func(w word) bool { return indexed(w) || strings.Contains(w.text, "(") }) {
			return name + ", which evaluates its words"
		}
	case "set":
		if slices.ContainsFunc(words, func(w word) bool {
			return !w.static || strings.Contains(w.text, "H") || slices.Contains([]string{"posix", "history", "histexpand"}, w.text)
		}) {
			return "set, which changes how the shell reads what follows"
		}
	}
	if rereads[name] {
		return name + ", which changes how the shell reads what follows"
	}
	return ""
}
