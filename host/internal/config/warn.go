package config

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/internal/lazyregexp"
	"github.com/toolhost/toolhost/sdk/protect"
	"github.com/toolhost/toolhost/sdk/tool"
)

func (d *decoder) warnAllow(w word) {
	if command.RunsAny(strings.Fields(w.text)) {
		d.warn(w.expr.Range(), warnAllow, "allow: %s lets nearly any command run unasked. List the commands that you need, such as \"make test\".", quote(w.expr, w.text))
	}
}

func (d *decoder) warnDeny(w word) {
	words := strings.Fields(w.text)
	first := slices.IndexFunc(words, func(word string) bool { return strings.HasPrefix(word, "-") })
	if first > 0 {
		d.warn(w.expr.Range(), warnDeny, "deny: %s does not cover other orders and spellings of its options, such as -fr and -r -f for -rf. Deny %s without options.",
			quote(w.expr, w.text), quote(w.expr, strings.Join(words[:first], " ")))
	}
}

// choosesPrograms matches variables that choose what programs run or load, in addition
// to those that no command gets ([protect.Variable]).
var choosesPrograms = lazyregexp.New(`^(PATH|HOME|CDPATH|SHELL|(GIT_)?EDITOR|VISUAL|(MAN)?PAGER|BROWSER|LESSOPEN|LESSCLOSE|XDG_CONFIG_HOME|GCONV_PATH|` +
	`PYTHON(PATH|STARTUP|HOME)|NODE_(OPTIONS|PATH)|PERL5(LIB|OPT|DB)|RUBY(LIB|OPT)|_?JAVA(_TOOL)?_OPTIONS|CLASSPATH|GOFLAGS|RUSTC(_WRAPPER)?|CC|CXX|LD|MAKE(FLAGS|FILES))$`)

func (d *decoder) warnAssign(w word) {
	switch {
	case strings.HasPrefix(w.text, "GIT_"):
		d.mistake(w.expr.Range(), "Useless variable", "A command that sets a variable of git always needs approval. Remove %s.", quote(w.expr, w.text))
	case protect.Variable(w.text), choosesPrograms().MatchString(w.text):
		d.warn(w.expr.Range(), warnAssign, "assign: with %s a command chooses what its program runs or loads. Remove it, so that such commands need approval.", quote(w.expr, w.text))
	}
}

func (d *decoder) warnRisk(high *hcl.Attribute) {
	d.warn(high.Expr.Range(), warnRisk, "risk: allowed programs may remove, execute or send anything unasked, as \"find . -delete\" does. Write high = %q, or %q.",
		policy.Confirm, policy.Ask)
}

// runByName matches names of files that programs of a project's users run or read at
// their start, in addition to those of [protect.Names].
var runByName = lazyregexp.New(`(?i)^((gnu)?makefile|dockerfile|justfile|rakefile|gemfile|package\.json|taskfile\.ya?ml|(docker-)?compose\.ya?ml|` +
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
		d.warn(w.expr.Range(), warnRedirect, "write_redirects: commands write %s unasked, and it is not in the workspace. Name a file in the workspace.", quote(w.expr, w.text))
	case runByName().MatchString(path.Base(name)) || protect.Covers(protect.Presets(), strings.TrimPrefix(name, workspace)):
		d.warn(w.expr.Range(), warnRedirect, "write_redirects: commands write %s unasked, and programs run its content. Remove it, so that such commands need approval.", quote(w.expr, w.text))
	}
}

// variable matches a shell variable at the beginning of a path.
var variable = lazyregexp.New(`^\$(\{\w+\}|\w+)(/|$)`)

// notExpanded reports whether a path begins with a shell variable, and records a
// mistake.
func (d *decoder) notExpanded(w word) bool {
	if !variable().MatchString(w.text) {
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
		d.warn(w.expr.Range(), warnPattern, "%s: %s leads out of the workspace (%s). Write an absolute path.", list, quote(w.expr, w.text), workspace)
	case !strings.Contains(text, "/"):
		d.warn(w.expr.Range(), warnPattern, "%s: %s covers only the top of the workspace. Begin it with \"**/\" to cover every directory, or with \"./\" if you mean the top.",
			list, quote(w.expr, w.text))
	}
}

// warnUser warns about the name of an unknown user. what describes the effect.
func (d *decoder) warnUser(expr hcl.Expression, name, what string) {
	if !slices.Contains(d.users, name) && !d.ofIssuer(name) {
		d.warn(expr.Range(), warnUser, "%s is neither the user of a token nor local_user, so %s.%s", quote(expr, name), what, diag.DidYouMean(name, d.users))
	}
}

// namesIn finds names that a condition compares: it warns about unknown users in
// caller.user == "name" and in contains(["name"], caller.user), and notes the names of tools.
func (d *decoder) namesIn(rule string, expr hclsyntax.Expression) {
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
		for _, e := range about {
			name, ok := diag.Literal(e)
			switch {
			case !ok:
			case slices.ContainsFunc(about, func(other hclsyntax.Expression) bool { return isPart(other, "caller", "user") }):
				d.warnUser(e, name, "caller.user is never this name")
			case slices.ContainsFunc(about, func(other hclsyntax.Expression) bool { return isPart(other, "tool", "name") }):
				d.toolNames = append(d.toolNames, ToolName{Place: diag.Place(e.Range()), Where: fmt.Sprintf("rule %q", rule), Pattern: name})
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

// isPart reports whether an expression is a part of the call, such as caller.user.
func isPart(expr hclsyntax.Expression, root, name string) bool {
	of, ok := expr.(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(of.Traversal) != 2 || of.Traversal.RootName() != root {
		return false
	}
	step, ok := of.Traversal[1].(hcl.TraverseAttr)
	return ok && step.Name == name
}

// systemDirs hold the programs of a machine and their configuration. A plugin that can
// change them can make programs of other users run anything.
var systemDirs = []string{
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/usr/libexec",
	"/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/etc", "/boot", "/var/spool/cron",
}

// inSystem reports whether a path belongs to the system, or holds such a path.
func inSystem(path string) bool {
	return slices.ContainsFunc(systemDirs, func(dir string) bool { return within(dir, path) || within(path, dir) })
}

// sockets are those of daemons that start programs as root for any client.
var sockets = []string{
	"/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/buildkit/buildkitd.sock",
}

// isSocket reports whether a path is one of these sockets, or holds one.
func isSocket(path string) bool {
	return slices.ContainsFunc(sockets, func(socket string) bool { return within(path, socket) || filepath.Base(path) == filepath.Base(socket) })
}

// warnPath warns about a path that a plugin gets.
func (d *decoder) warnPath(w word, use, path string) {
	said := quote(w.expr, w.text)
	switch {
	case isSocket(path):
		d.warn(w.expr.Range(), warnSocket, "%s: %s gives the plugin the socket of a container engine, with which it can start a container that reaches the whole machine. Remove it.", use, said)
	case use != useWrite:
	case inSystem(path):
		d.warn(w.expr.Range(), warnSystem, "write: %s belongs to the system, whose programs run or read its files. Name a directory for the plugin alone.", said)
	case slices.ContainsFunc(d.searched(), func(dir string) bool { return within(dir, path) || within(path, dir) }):
		d.warn(w.expr.Range(), warnProgram, "write: %s is in PATH, so you may run programs that the plugin writes there. Name another directory.", said)
	}
}

// searched returns the absolute directories of PATH.
func (d *decoder) searched() []string {
	list, _ := d.opts.LookupEnv("PATH")
	return slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool { return !filepath.IsAbs(dir) })
}

// warnProtect warns about a list that protects less than the default.
func (d *decoder) warnProtect(c *confinement, attr *hcl.Attribute) {
	if c.access.Workspace != sandbox.WriteWorkspace || len(c.access.Presets) > 0 {
		return
	}
	words := strings.Join(diag.Quoted(protect.Presets()), ", ")
	if len(c.access.Protect) == 0 {
		d.warn(attr.NameRange, warnProtect, "protect is empty: the plugin may change files in the workspace that git, editors and agents run. Remove it for the default %s.", words)
		return
	}
	d.warn(attr.NameRange, warnProtect, "protect lists only paths and replaces the default %s, so those names are not protected. Add the words that you need.", words)
}

// warnConfinement warns about arguments of a sandbox that are unsafe together.
func (d *decoder) warnConfinement(c *confinement) {
	if c.access.Isolation == sandbox.Off && c.said.isolation != nil && (len(c.access.Exec) > 0 || len(c.said.writes) > 0 || c.said.workspace != nil || c.said.network != nil) {
		d.warn(c.said.isolation.Expr.Range(), warnIsolation, `isolation = "off" does not enforce filesystem and network: the plugin can read, change and execute whatever the host's account can. Write "auto".`)
		return
	}
	for _, w := range c.said.writes {
		for _, exec := range c.access.Exec {
			if filepath.IsAbs(exec) && !inSystem(w.path) && (within(exec, w.path) || within(w.path, exec)) {
				d.warn(w.at, warnProgram, "write: the plugin may also execute %s, and so the programs that it writes there. Name another directory in one of the two.", exec)
			}
		}
	}
}

// usuallySecret matches names of variables that usually hold secrets.
var usuallySecret = lazyregexp.New(`(?i)(SECRET|TOKEN|PASSW|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|_KEY$|_PAT$)`)

// warnPass warns about a variable of the host that a plugin gets.
func (d *decoder) warnPass(w word) {
	ofCommit := strings.HasPrefix(w.text, "GIT_AUTHOR_") || strings.HasPrefix(w.text, "GIT_COMMITTER_")
	switch {
	case protect.Variable(w.text) && !ofCommit:
		d.warn(w.expr.Range(), warnEnvironment, "env: %s makes programs, including the plugin, load or run other code. Remove it.", quote(w.expr, w.text))
	case usuallySecret().MatchString(w.text):
		d.warn(w.expr.Range(), warnSecret, "env: %s usually holds a secret, which every program of the plugin can read. Write it into a secret block, and list that in secrets of the plugin.",
			quote(w.expr, w.text))
	}
}

// warnShared warns about secrets of users that a plugin with one process for everybody gets.
func (d *decoder) warnShared(block pluginBlock, ofUsers []string) {
	d.warn(block.Secrets.NameRange, warnShared, "secrets: each user sets %s, and one process of plugin %q gets the values of all users. Write isolation_scope = \"user\".",
		diag.Words(ofUsers), block.Name)
}

// checkWidth warns about a workspace that holds more than a project. A home directory that a tool can
// write is a mistake unless a comment accepts it: a file there can run programs at the next login.
func (d *decoder) checkWidth(attr *hcl.Attribute, cfg *Config) {
	path := cfg.Workspace.Top()
	if path == "" { // a mistake of its own
		return
	}
	home, _ := d.opts.LookupEnv("HOME")
	isHome := path == "/root" || filepath.Dir(path) == "/home" || filepath.IsAbs(home) && within(path, home)
	at := attr.Expr.Range()
	accepted := slices.ContainsFunc(d.accepted, func(a Accepted) bool { return a.Word == warnWorkspace && a.Place == diag.Place(at) })
	const remedy = "Name the directory of a project."
	switch {
	case inSystem(path):
		d.warn(at, warnWorkspace, "workspace: %s belongs to the system, and tools may change its files. "+remedy, path)
	case isHome && !accepted && slices.ContainsFunc(cfg.Plugins, writesWorkspace):
		d.mistake(at, "Home directory as workspace",
			"%s is or contains a home directory, where tools could change start-up files and keys. "+remedy+" If you mean it, add the comment # accept: %s.", path, warnWorkspace)
	case isHome:
		d.warn(at, warnWorkspace, "workspace: %s is or contains a home directory, where tools reach keys and start-up files. "+remedy, path)
	}
}

// writesWorkspace reports whether tools of a plugin may write in the workspace.
func writesWorkspace(p Plugin) bool {
	c := p.Supervisor.Confinement
	return p.Enabled && p.Catalog.Ceiling != tool.ReadOnly && (c.Workspace == sandbox.WriteWorkspace || c.Isolation == sandbox.Off)
}
