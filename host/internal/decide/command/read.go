package command

import (
	"errors"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// reader reads one line.
type reader struct {
	opts Options
	line *Line
	// text is being parsed: the line, or a part of it that is a command.
	text  string
	depth int
	// functions are the functions being defined.
	functions []string
	// sets are the variables that a deferred line sets.
	sets map[string]bool
	// leftOut are words that name files for grep to leave out.
	leftOut []*syntax.Word
	// background reports that the shell does not wait for the part being read, and fed that it gets
	// input from another command or a file.
	background, fed bool
}

// read adds the commands of a text.
func (r *reader) read(text string, depth int) {
	switch {
	case depth > maxDepth:
		r.tooDeep(text)
		return
	case len(text) > MaxLength:
		r.line.unread(High, "it is longer than %d bytes", MaxLength)
		return
	}
	r.characters(text)
	r.continuations(text)
	if openings(text) > maxOpen {
		r.line.unread(High, "it opens more than %d constructs", maxOpen)
		r.rest()
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
	if err != nil {
		r.line.unread(Medium, "it cannot be parsed: %s", reason(err))
		r.words(text, "it cannot be parsed")
		return
	}
	if depth == 0 {
		r.line.tree = file
		r.sets = setIn(file)
	}
	inner := *r
	inner.text, inner.depth = text, depth
	inner.disagreements(file)
	inner.mentions(file)
	inner.statements(file.Stmts)
}

// reason returns why a text cannot be parsed.
func reason(err error) string {
	if parse, ok := errors.AsType[syntax.ParseError](err); ok {
		return parse.Text
	}
	return err.Error()
}

// tooDeep refuses a command that is nested in too many others.
func (r *reader) tooDeep(text string) {
	r.line.unread(High, "commands in commands in commands, more than %d deep", maxDepth)
	r.words(text, "it lies too deep in other commands")
}

// words looks for programs in a text that cannot be read: a shell may still run its first lines.
// Any word, without its quotes, may be a program.
func (r *reader) words(text, why string) {
	quotes := quotes()
	for _, part := range parts(text) {
		words := strings.Fields(quotes.Replace(part))
		if len(words) == 0 {
			continue
		}
		r.add(Segment{Argv: strings.Fields(part), Name: nameOf(words[0]), Risk: Medium, Why: why, Words: words, Maybe: true, Unparsed: true})
	}
}

// parts splits a text at places where a command may end.
func parts(text string) []string {
	text = strings.ReplaceAll(text, "\\\n", "")
	return strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune("\n;&|(){}<>`", c) })
}

// quotes removes quotes from words.
func quotes() *strings.Replacer { return strings.NewReplacer(`\`, "", `'`, "", `"`, "", "$", "") }

// openings counts the places that may open a nested construct.
func openings(text string) int {
	n := 0
	for i := range len(text) {
		if strings.IndexByte("({[`!<", text[i]) >= 0 {
			n++
		}
	}
	for _, keyword := range []string{"if", "while", "until", "for", "case", "select", "time", "coproc", "function"} {
		n += strings.Count(text, keyword+" ") + strings.Count(text, keyword+"\n") + strings.Count(text, keyword+"\t")
	}
	return n
}

// source returns the text of a node.
func (r *reader) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(r.text) || from > to {
		return ""
	}
	return r.text[from:to]
}

func (r *reader) statements(all []*syntax.Stmt) {
	for _, s := range all {
		r.statement(s)
	}
}

func (r *reader) statement(s *syntax.Stmt) {
	if s == nil {
		return
	}
	background, fed := r.background, r.fed
	r.background = background || s.Background || s.Coprocess || s.Disown
	r.fed = fed || slices.ContainsFunc(s.Redirs, feeds)
	first := len(r.line.Segments)
	r.command(s.Cmd)
	r.redirects(s, first)
	r.background, r.fed = background, fed
}

// command reads one command. A kind that is not listed here is a problem.
func (r *reader) command(c syntax.Command) {
	switch c := c.(type) {
	case nil:
	case *syntax.CallExpr:
		r.call(c)
	case *syntax.BinaryCmd:
		r.statement(c.X)
		pipe, fed := c.Op == syntax.Pipe || c.Op == syntax.PipeAll, r.fed
		r.fed = fed || pipe
		r.statement(c.Y)
		r.fed = fed
	case *syntax.Block:
		r.statements(c.Stmts)
	case *syntax.Subshell:
		r.statements(c.Stmts)
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			r.statements(c.Cond)
			r.statements(c.Then)
		}
	case *syntax.WhileClause:
		r.statements(c.Cond)
		r.statements(c.Do)
	case *syntax.ForClause:
		r.loop(c)
	case *syntax.CaseClause:
		r.inside(c.Word)
		for _, item := range c.Items {
			for _, pattern := range item.Patterns {
				r.inside(pattern)
			}
			r.statements(item.Stmts)
		}
	case *syntax.TimeClause:
		r.statement(c.Stmt)
	case *syntax.TestClause:
		r.test(c.X)
	case *syntax.FuncDecl:
		r.function(c)
	case *syntax.DeclClause:
		r.declaration(c)
	case *syntax.CoprocClause:
		r.statement(c.Stmt)
	case *syntax.ArithmCmd:
		r.line.problem(High, "arithmetic, which may run what its variables hold")
		r.inside(c.X)
	case *syntax.LetClause:
		r.add(Segment{Argv: []string{"let"}, Name: "let", Words: []string{"let"}, Risk: High, Why: "arithmetic, which may run what its variables hold"})
		for _, x := range c.Exprs {
			r.inside(x)
		}
	default:
		r.line.problem(High, "a construct that is not read here")
		r.inside(c)
	}
}

func (r *reader) loop(c *syntax.ForClause) {
	if c.Select {
		r.line.problem(Medium, "a menu (select)")
	}
	if _, ok := c.Loop.(*syntax.CStyleLoop); ok {
		r.line.problem(High, "arithmetic, which may run what its variables hold")
	}
	if words, ok := c.Loop.(*syntax.WordIter); ok && words.Name != nil {
		r.variable(words.Name.Value)
	}
	r.inside(c.Loop)
	r.statements(c.Do)
}

// variable reports an assignment to a variable that may have a special meaning.
func (r *reader) variable(name string) {
	// Those that programs and shells look at are upper case, but for http_proxy and the like.
	if strings.ToLower(name) != name || strings.HasSuffix(name, "_proxy") {
		r.later("it sets %s", name)
	}
}

func (r *reader) function(c *syntax.FuncDecl) {
	name := ""
	if c.Name != nil {
		name = c.Name.Value
	}
	r.line.problem(High, "it defines a function (%s)", name)
	before := r.functions
	r.functions = append(slices.Clone(before), name)
	r.statement(c.Body)
	r.functions = before
}

// declaration reads export, declare and similar builtins.
func (r *reader) declaration(c *syntax.DeclClause) {
	s := Segment{Argv: []string{c.Variant.Value}, Name: c.Variant.Value, Words: []string{c.Variant.Value}, Risk: High, Why: "it sets variables for everything that follows"}
	for _, a := range c.Args {
		s.Argv = append(s.Argv, r.source(a))
	}
	r.add(s)
	for _, a := range c.Args {
		r.insideAssign(a)
	}
}

// add adds a segment.
func (r *reader) add(s Segment) {
	if len(r.line.Segments) >= maxSegments {
		r.line.unread(High, "it holds more than %d commands", maxSegments)
		r.rest()
		return
	}
	if !s.Maybe && r.background && slices.Contains(r.functions, s.Name) {
		r.line.Forbidden = "a function that starts itself in the background (fork bomb)"
	}
	r.line.Segments = append(r.line.Segments, s)
}

// rest adds one segment with all words of a line that could not be read.
func (r *reader) rest() {
	if r.line.rest {
		return
	}
	r.line.rest = true
	var words []string
	quotes := quotes()
	for _, part := range parts(r.line.text) {
		words = append(append(words, strings.Fields(quotes.Replace(part))...), Break)
	}
	r.line.Segments = append(r.line.Segments, Segment{Argv: []string{"..."}, Name: "...", Risk: High, Why: "there is too much to be read", Words: words, Maybe: true, Unparsed: true})
}
