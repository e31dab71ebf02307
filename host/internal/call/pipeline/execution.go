package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/links"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// byTree returns the one argument of the call that is a command and that its tool
// executes by its tree; "" if there is none, or several.
func (c *call) byTree() string {
	if !c.entry.Spec.CommandTree {
		return ""
	}
	var found []string
	for _, name := range slices.Sorted(maps.Keys(c.arguments.Values)) {
		if value, ok := c.arguments.Values[name].(string); ok {
			found = append(found, c.entry.ValuesOf(tool.RoleCommand, map[string]any{name: value})...)
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// commandTree is the tree of a command whose text no person approved, nil if a
// shell may read it.
func (p *Pipeline) commandTree(c *call) ([]byte, error) {
	if c.tree == nil || c.approval.ID != "" || p.rules().TextAllowed() {
		return nil, nil
	}
	tree, err := c.tree.Tree()
	if err == nil && len(tree) == 0 {
		err = fmt.Errorf("the command of call %s has no tree", c.id)
	}
	return tree, err
}

// deferred decides once more about a call that a person would be asked about, whose command
// is executed by its tree: as if what is known only when it runs were harmless, since
// mayRun judges it then.
func (s *Settings) deferred(c *call, asked policy.Decision) policy.Decision {
	if asked.Verdict == policy.Allow || asked.Verdict == policy.Deny || c.tree == nil || !c.tree.HasTree() || s.Policy.TextAllowed() {
		return asked
	}
	commands := s.commands(c)
	for i := range commands {
		if commands[i].Line == c.tree {
			commands[i].Line = command.ParseDeferred(c.tree.Text(), s.Policy.Reading(s.Roots))
		}
	}
	d := s.Policy.Decide(s.inputOf(c, commands, s.paths(c)))
	if d.Verdict != policy.Allow {
		return asked
	}
	d.Rule += ", and each part when it runs"
	return d
}

// mayRun judges one part of the command of a call that is executed by its tree, by the
// policy of this moment.
func (p *Pipeline) mayRun(c *call, e tool.Execution) *tool.Error {
	d := p.judgeExecution(c, &e)
	what := shownExecution(&e)
	switch d.Verdict {
	case policy.Allow:
		return nil
	case policy.Deny:
		p.opts.Logger.Info("a part of a command was denied", "call", c.id, "part", what, "rule", d.Rule)
		return tool.AsError(denied(d))
	case policy.Ask, policy.Confirm:
	}
	p.opts.Logger.Info("a part of a command needs approval", "call", c.id, "part", what, "rule", d.Rule)
	p.refusals.note(c, what)
	return tool.Errorf(tool.PermissionDenied, "this needs approval: %s", what).
		WithHint("what came before it has run. Make the same call again: then a person is asked about the whole command")
}

// judgeExecution decides about one part as about a call of the same tool that runs
// nothing else, there.
func (p *Pipeline) judgeExecution(c *call, e *tool.Execution) policy.Decision {
	if place := cmp.Or(e.File, e.Directory); !filepath.IsAbs(place) {
		return policy.Decision{Verdict: policy.Confirm, Rule: "a place that is not absolute"}
	}
	applied := p.applied.Load()
	reading := applied.Policy.Reading(applied.Roots)
	var line *command.Line
	if e.Argv == nil {
		line = command.ParseOpen(applied.asConfigured(e.File), e.Write, reading)
	} else {
		line = command.ParseArgv(e.Argv, e.Environment, reading)
	}
	paths := applied.paths(c)
	if dir := applied.asConfigured(links.Resolve(e.Directory)); len(applied.Roots) == 0 || dir != applied.Roots[0] {
		paths = append(paths, policy.Path{Name: e.Directory, Absolute: dir})
	}
	in := applied.inputOf(c, []policy.Command{{Line: line}}, paths)
	d := applied.Policy.Decide(in)
	if d.Standing {
		call := p.grantable(c, applied, d)
		d = p.underGrants(applied.Policy, in, d, &call)
	}
	return d
}

// asConfigured returns a path that leads into the workspace as the configuration spells it.
func (s *Settings) asConfigured(path string) string {
	if !filepath.IsAbs(path) || len(s.Roots) == 0 {
		return path
	}
	path = filepath.Clean(path)
	if real := links.Resolve(s.Roots[0]); real != s.Roots[0] && policy.Within(path, real) {
		return filepath.Join(s.Roots[0], strings.TrimPrefix(path, real))
	}
	return path
}

// shownExecution is a part of a command for a model and for people.
func shownExecution(e *tool.Execution) string {
	words := slices.Concat(e.Environment, e.Argv)
	switch {
	case e.Argv != nil:
		return tool.VisibleName(command.Join(words))
	case e.Write:
		return "writing " + tool.VisibleName(e.File)
	}
	return "reading " + tool.VisibleName(e.File)
}
