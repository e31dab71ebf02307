package config

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/protect"
)

// warning reports a setting that is unsafe or has no effect. The configuration is
// valid nevertheless.
type warning struct {
	at   hcl.Range
	text string
}

// warn records a warning once: several plugins may have the same sandbox.
func (d *decoder) warn(at hcl.Range, format string, args ...any) {
	w := warning{at, d.secrets.in(fmt.Sprintf(format, args...))}
	if !slices.Contains(d.warnings, w) {
		d.warnings = append(d.warnings, w)
	}
}

// warned returns all warnings with their places, in the order of the files.
func (d *decoder) warned() []string {
	slices.SortStableFunc(d.warnings, func(a, b warning) int {
		return cmp.Or(strings.Compare(a.at.Filename, b.at.Filename), a.at.Start.Byte-b.at.Start.Byte)
	})
	var texts []string
	for _, w := range d.warnings {
		texts = append(texts, diag.Place(w.at)+": "+w.text)
	}
	return texts
}

func (d *decoder) warnAllow(w word) {
	if command.RunsAny(strings.Fields(w.text)) {
		d.warn(w.expr.Range(), "allow: %s lets nearly any command run unasked. List the commands that you need, such as \"make test\".", quote(w.expr, w.text))
	}
}

func (d *decoder) warnDeny(w word) {
	words := strings.Fields(w.text)
	first := slices.IndexFunc(words, func(word string) bool { return strings.HasPrefix(word, "-") })
	if first > 0 {
		d.warn(w.expr.Range(), "deny: %s does not cover other orders and spellings of its options, such as -fr and -r -f for -rf. Deny %s without options.",
			quote(w.expr, w.text), quote(w.expr, strings.Join(words[:first], " ")))
	}
}

// choosesPrograms matches variables that choose what programs run or load, in addition
// to those that no command gets ([protect.Variable]).
var choosesPrograms = regexp.MustCompile(`^(PATH|HOME|CDPATH|SHELL|(GIT_)?EDITOR|VISUAL|(MAN)?PAGER|BROWSER|LESSOPEN|LESSCLOSE|XDG_CONFIG_HOME|GCONV_PATH|` +
	`PYTHON(PATH|STARTUP|HOME)|NODE_(OPTIONS|PATH)|PERL5(LIB|OPT|DB)|RUBY(LIB|OPT)|_?JAVA(_TOOL)?_OPTIONS|CLASSPATH|GOFLAGS|RUSTC(_WRAPPER)?|CC|CXX|LD|MAKE(FLAGS|FILES))$`)

func (d *decoder) warnAssign(w word) {
	switch {
	case strings.HasPrefix(w.text, "GIT_"):
		d.mistake(w.expr.Range(), "Useless variable", "A command that sets a variable of git always needs approval. Remove %s.", quote(w.expr, w.text))
	case protect.Variable(w.text), choosesPrograms.MatchString(w.text):
		d.warn(w.expr.Range(), "assign: with %s a command chooses what its program runs or loads. Remove it, so that such commands need approval.", quote(w.expr, w.text))
	}
}

func (d *decoder) warnRisk(high *hcl.Attribute) {
	d.warn(high.Expr.Range(), "risk: allowed programs may remove, execute or send anything unasked, as \"find . -delete\" does. Write high = %q, or %q.",
		policy.Confirm, policy.Ask)
}

// runByName matches names of files that programs of a project's users run or read at
// their start, in addition to those of [protect.Names].
var runByName = regexp.MustCompile(`(?i)^((gnu)?makefile|dockerfile|justfile|rakefile|gemfile|package\.json|taskfile\.ya?ml|(docker-)?compose\.ya?ml|` +
	`setup\.py|conftest\.py|build\.rs|build\.gradle(\.kts)?|cmakelists\.txt|\.(bash|zsh)rc|\.(bash_|z)?profile|\.zshenv|\.gitconfig|\.npmrc|.*\.(sh|bash))$`)

func (d *decoder) warnRedirect(w word, workspace string) {
	name, absolute := w.text, filepath.IsAbs(w.text)
	if !absolute {
		name = filepath.Join(workspace, w.text)
	}
	harmless := slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/full"}, name) || within("/tmp", name) || within("/var/tmp", name)
	inside := !strings.HasPrefix(w.text, "~") && within(workspace, name)
	switch {
	case workspace == "" || !inside && absolute && harmless:
	case !inside:
		d.warn(w.expr.Range(), "write_redirects: commands write %s unasked, and it is not in the workspace. Name a file in the workspace.", quote(w.expr, w.text))
	case runByName.MatchString(path.Base(name)) || protect.Covers(protect.Presets(), strings.TrimPrefix(name, workspace)):
		d.warn(w.expr.Range(), "write_redirects: commands write %s unasked, and programs run its content. Remove it, so that such commands need approval.", quote(w.expr, w.text))
	}
}

// variable matches a shell variable at the beginning of a path.
var variable = regexp.MustCompile(`^\$(\{\w+\}|\w+)(/|$)`)

// notExpanded reports whether a path begins with a shell variable, and records a
// mistake.
func (d *decoder) notExpanded(w word) bool {
	if !variable.MatchString(w.text) {
		return false
	}
	d.mistake(w.expr.Range(), "Not expanded", "Shell variables are not expanded here, so %s names nothing. Write pathexpand(\"~/...\") for the home directory, or \"${env(\"NAME\")}/...\".",
		quote(w.expr, w.text))
	return true
}

// warnPattern warns about patterns of forbidden and sensitive that are relative to the
// workspace.
func (d *decoder) warnPattern(list string, w word, workspace string) {
	text := strings.TrimSuffix(w.text, "/")
	switch {
	case strings.HasPrefix(w.text, "/"), strings.HasPrefix(w.text, "!"), strings.Trim(text, "*") == "":
	case strings.HasPrefix(path.Clean(text), "../"):
		d.warn(w.expr.Range(), "%s: %s leads out of the workspace (%s). Write an absolute path.", list, quote(w.expr, w.text), workspace)
	case !strings.Contains(text, "/"):
		d.warn(w.expr.Range(), "%s: %s covers only the top of the workspace. Begin it with \"**/\" to cover every directory, or with \"./\" if you mean the top.",
			list, quote(w.expr, w.text))
	}
}

// warnUser warns about the name of an unknown user. what describes the effect.
func (d *decoder) warnUser(expr hcl.Expression, name, what string) {
	if !slices.Contains(d.users, name) {
		d.warn(expr.Range(), "%s is neither the user of a token nor local_user, so %s.%s", quote(expr, name), what, diag.DidYouMean(name, d.users))
	}
}

// warnCondition warns about unknown users in caller.user == "name" and in
// contains(["name"], caller.user).
func (d *decoder) warnCondition(expr hclsyntax.Expression) {
	_ = hclsyntax.VisitAll(expr, func(node hclsyntax.Node) hcl.Diagnostics {
		var about []hclsyntax.Expression
		switch n := node.(type) {
		case *hclsyntax.BinaryOpExpr:
			if n.Op == hclsyntax.OpEqual || n.Op == hclsyntax.OpNotEqual {
				about = []hclsyntax.Expression{n.LHS, n.RHS}
			}
		case *hclsyntax.FunctionCallExpr:
			if list, ok := firstArgument(n).(*hclsyntax.TupleConsExpr); ok && n.Name == "contains" {
				about = slices.Concat(list.Exprs, n.Args[1:])
			}
		}
		if !slices.ContainsFunc(about, isCallerUser) {
			return nil
		}
		for _, e := range about {
			if name, ok := diag.Literal(e); ok {
				d.warnUser(e, name, "caller.user is never this name")
			}
		}
		return nil
	})
}

func firstArgument(call *hclsyntax.FunctionCallExpr) hclsyntax.Expression {
	if len(call.Args) == 0 {
		return nil
	}
	return call.Args[0]
}

func isCallerUser(expr hclsyntax.Expression) bool {
	of, ok := expr.(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(of.Traversal) != 2 || of.Traversal.RootName() != "caller" {
		return false
	}
	step, ok := of.Traversal[1].(hcl.TraverseAttr)
	return ok && step.Name == "user"
}
