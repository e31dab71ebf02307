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

// warning is about what is easily written and unsafe, or has no effect: it keeps no
// configuration from being used.
type warning struct {
	at   hcl.Range
	text string
}

// warn records one, once: several plugins may have the same sandbox.
func (d *decoder) warn(at hcl.Range, format string, args ...any) {
	w := warning{at, d.secrets.in(fmt.Sprintf(format, args...))}
	if !slices.Contains(d.warnings, w) {
		d.warnings = append(d.warnings, w)
	}
}

// warned returns all warnings in the order of the files, each with its place.
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
		d.warn(w.expr.Range(), "allow: %s lets nearly any command run unasked. List the commands that are meant, such as \"make test\".", quote(w.expr, w.text))
	}
}

func (d *decoder) warnDeny(w word) {
	words := strings.Fields(w.text)
	first := slices.IndexFunc(words, func(word string) bool { return strings.HasPrefix(word, "-") })
	if first > 0 {
		d.warn(w.expr.Range(), "deny: %s does not cover its options in another order or spelling, such as -fr and -r -f for -rf. Deny %s without options.",
			quote(w.expr, w.text), quote(w.expr, strings.Join(words[:first], " ")))
	}
}

// choosesPrograms are variables by which programs find what they run or load, beside those
// that no command gets at all ([protect.Variable]).
var choosesPrograms = regexp.MustCompile(`^(PATH|HOME|CDPATH|SHELL|(GIT_)?EDITOR|VISUAL|(MAN)?PAGER|BROWSER|LESSOPEN|LESSCLOSE|XDG_CONFIG_HOME|GCONV_PATH|` +
	`PYTHON(PATH|STARTUP|HOME)|NODE_(OPTIONS|PATH)|PERL5(LIB|OPT|DB)|RUBY(LIB|OPT)|_?JAVA(_TOOL)?_OPTIONS|CLASSPATH|GOFLAGS|RUSTC(_WRAPPER)?|CC|CXX|LD|MAKE(FLAGS|FILES))$`)

func (d *decoder) warnAssign(w word) {
	switch {
	case strings.HasPrefix(w.text, "GIT_"):
		d.mistake(w.expr.Range(), "Useless variable", "A command that sets a variable of git is asked about, whatever this list says. Remove %s.", quote(w.expr, w.text))
	case protect.Variable(w.text), choosesPrograms.MatchString(w.text):
		d.warn(w.expr.Range(), "assign: with %s a command chooses what its program runs or loads. Remove it, and a person is asked about such commands.", quote(w.expr, w.text))
	}
}

func (d *decoder) warnRisk(high *hcl.Attribute) {
	d.warn(high.Expr.Range(), "risk: allowed programs may remove, execute or send away anything unasked, as \"find . -delete\" does. Write high = %q, or %q.",
		policy.Confirm, policy.Ask)
}

// runByName are files of a project that its users' programs run, or take for their
// start-up files, beside those of [protect.Names].
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
		d.warn(w.expr.Range(), "write_redirects: %s is not in the workspace, and commands write it unasked. Name a file in the workspace.", quote(w.expr, w.text))
	case runByName.MatchString(path.Base(name)) || protect.Covers(protect.Presets(), strings.TrimPrefix(name, workspace)):
		d.warn(w.expr.Range(), "write_redirects: programs run what %s says, and commands write it unasked. Remove it, and a person is asked about such commands.", quote(w.expr, w.text))
	}
}

// variable is how a shell would name one at the beginning of a path.
var variable = regexp.MustCompile(`^\$(\{\w+\}|\w+)(/|$)`)

// notExpanded reports a path that begins with a variable, as for a shell.
func (d *decoder) notExpanded(w word) bool {
	if !variable.MatchString(w.text) {
		return false
	}
	d.mistake(w.expr.Range(), "Not expanded", "Variables are not expanded, so %s names nothing. For the home directory write pathexpand(\"~/...\"), else \"${env(\"NAME\")}/...\".",
		quote(w.expr, w.text))
	return true
}

// warnPattern is about patterns that are relative to the workspace, as forbidden and
// sensitive have.
func (d *decoder) warnPattern(list string, w word, workspace string) {
	text := strings.TrimSuffix(w.text, "/")
	switch {
	case strings.HasPrefix(w.text, "/"), strings.HasPrefix(w.text, "!"), strings.Trim(text, "*") == "":
	case strings.HasPrefix(path.Clean(text), "../"):
		d.warn(w.expr.Range(), "%s: %s leads out of the workspace (%s), which patterns are relative to. Write an absolute path.", list, quote(w.expr, w.text), workspace)
	case !strings.Contains(text, "/"):
		d.warn(w.expr.Range(), "%s: %s covers the top of the workspace only. Begin it with \"**/\" to cover every directory, or with \"./\" to say that you mean the top.",
			list, quote(w.expr, w.text))
	}
}

// warnUser is about the name of a user that nobody has; what says what follows.
func (d *decoder) warnUser(expr hcl.Expression, name, what string) {
	if !slices.Contains(d.users, name) {
		d.warn(expr.Range(), "no token has the user %s, and local_user is another one, so %s.%s", quote(expr, name), what, diag.DidYouMean(name, d.users))
	}
}

// warnCondition finds users that nobody is in caller.user == "name", and in
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
				d.warnUser(e, name, "caller.user is never that")
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
