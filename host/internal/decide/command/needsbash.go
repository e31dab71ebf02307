package command

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toolhost/toolhost/internal/lazyregexp"
)

// This file lists what the interpreter of mvdan.cc/sh lacks, or does differently than
// bash. Only bash executes such a line, so a person is asked about its text. Add new
// differences here.

// Shapes that both execute alike.
var (
	// A list of words, none of them empty, or a range that is short.
	alikeBraces = lazyregexp.New(`^[^{}]*\{(-?\d{1,4}\.\.-?\d{1,4}|[a-z]\.\.[a-z]|[A-Z]\.\.[A-Z]|[^{},]+(,[^{},]+)+)\}[^{}]*$`)
	// No division, whose error bash ends the line for, and no number with a zero before it.
	alikeArithmetic = lazyregexp.New(`^\$\(\(([ \t+*()<>=!&|?:-]|\$?[A-Za-z_]\w*|0|[1-9]\d*)*\)\)$`)
	unlike          = lazyregexp.New(`<<|>>|\*\*|\b0\d`) // of such arithmetic
	alikeFormat     = lazyregexp.New(`^([^%\\]|%%|%-?[1-9]?\d?[sd]|\\[nt\\0])*$`)
	alikeOperator   = lazyregexp.New(`^(-n|-z|!|-f|-d|-e|==|=|!=|<|>|=~|&&|\|\||-eq|-ne|-lt|-le|-gt|-ge)$`)
)

func ownVariable(name string) bool { return ownVariables[name] || strings.HasPrefix(name, "BASH") }

// needsBash reports whether a tree holds something that only bash executes as bash does.
func needsBash(tree *syntax.File, text string) (found bool) {
	source := func(n syntax.Node) string { return text[n.Pos().Offset():n.End().Offset()] }
	syntax.Walk(tree, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CoprocClause, *syntax.TimeClause:
			found = true
		case *syntax.ProcSubst:
			found = found || n.Op != syntax.CmdIn
		case *syntax.ForClause:
			found = found || n.Select
		case *syntax.Redirect:
			found = found || n.N != nil && !slices.Contains([]string{"0", "1", "2"}, n.N.Value)
		case *syntax.DeclClause:
			found = found || n.Variant.Value != "export"
		case *syntax.Word:
			found = found || differentWord(n)
		case *syntax.Assign:
			found = found || differentAssign(n)
		case *syntax.ParamExp:
			found = found || differentExpansion(n)
		case *syntax.ArithmExp:
			found = found || !alikeArithmetic().MatchString(source(n)) || unlike().MatchString(source(n))
		case *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
			found = true
		case *syntax.UnaryTest:
			found = found || !alikeOperator().MatchString(n.Op.String())
		case *syntax.BinaryTest:
			found = found || !alikeOperator().MatchString(n.Op.String())
		case *syntax.CallExpr:
			found = found || differentBuiltin(n)
		}
		return !found
	})
	return found
}

// differentWord reports whether a word has braces or a pattern with another meaning.
func differentWord(w *syntax.Word) bool {
	var unquoted strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			unquoted.WriteString(part.Value)
		case *syntax.ExtGlob:
			return true
		default:
			unquoted.WriteString("x")
		}
	}
	text := unquoted.String()
	return braces(text) && !alikeBraces().MatchString(text) || strings.Contains(text, "[!") || strings.Contains(text, "[^")
}

// differentAssign reports whether an assignment sets a variable that changes the shell's behavior.
// An empty IFS, as read often has, splits nothing.
func differentAssign(a *syntax.Assign) bool {
	return a.Name != nil && (ownVariable(a.Name.Value) || a.Name.Value == "PWD" || a.Name.Value == "IFS" && a.Value != nil)
}

// differentExpansion reports whether an expansion has another result.
func differentExpansion(p *syntax.ParamExp) bool {
	switch {
	case p.Param == nil, p.Excl, p.Names != 0, ownVariable(p.Param.Value):
		return true
	case p.Repl != nil: // the pattern may begin with # or %
		anchor := ""
		if p.Repl.Orig != nil && len(p.Repl.Orig.Parts) > 0 { // nil in ${x//}
			if lit, ok := p.Repl.Orig.Parts[0].(*syntax.Lit); ok {
				anchor = lit.Value[:min(1, len(lit.Value))]
			}
		}
		return anchor == "" || strings.ContainsAny(anchor, `#%\`)
	case p.Exp != nil:
		several := p.Param.Value == "@" || p.Param.Value == "*"
		return several || p.Exp.Op == syntax.OtherParamOps || p.Exp.Op == syntax.ErrorUnset || p.Exp.Op == syntax.ErrorUnsetOrNull
	}
	return false
}

// differentBuiltin reports whether a builtin is used in a way that both do not share, or changes
// how the shell continues.
func differentBuiltin(c *syntax.CallExpr) bool {
	if len(c.Args) == 0 {
		return false
	}
	words := make([]string, len(c.Args))
	for i, w := range c.Args {
		words[i] = w.Lit()
		if len(w.Parts) == 1 {
			if quoted, ok := w.Parts[0].(*syntax.SglQuoted); ok && !quoted.Dollar {
				words[i] = quoted.Value
			} else if quoted, ok := w.Parts[0].(*syntax.DblQuoted); ok && len(quoted.Parts) == 1 {
				if lit, ok := quoted.Parts[0].(*syntax.Lit); ok {
					words[i] = lit.Value
				}
			}
		}
	}
	switch words[0] {
	case "printf":
		return len(words) < 2 || words[1] == "" || strings.HasPrefix(words[1], "-") || !alikeFormat().MatchString(words[1])
	case "read":
		return slices.ContainsFunc(words[1:], func(word string) bool { return strings.HasPrefix(word, "-") && word != "-r" })
	case "mapfile", "readarray", "getopts", "declare", "typeset", "local", "readonly", "set", "shopt", "exec", "wait", "type", "dirs", "pushd", "popd", "let":
		return true
	}
	return false
}
