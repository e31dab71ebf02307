package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/command"
	"github.com/toolhost/toolhost/host/internal/links"
	"github.com/toolhost/toolhost/host/internal/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// byTree returns the one argument of the call that is a command and that its tool
// executes by its tree; "" if there is none, several, or one that is too long.
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
	if len(found) != 1 || len(found[0]) > command.MaxTree {
		return ""
	}
	return found[0]
}

// commandTree is the tree of the command that nobody has approved as a text, nil if a
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
	if dir := applied.asConfigured(e.Directory); len(applied.Roots) == 0 || dir != applied.Roots[0] {
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

const (
	// maxRefusals bounds the calls that are remembered since a part was refused; the
	// oldest goes first.
	maxRefusals = 1000
	// keepRefusal is how long one is remembered.
	keepRefusal = time.Hour
)

// refusals are the calls of which a part was refused when it ran: made again, they are
// asked about as a whole. The zero value is ready.
type refusals struct {
	mu    sync.Mutex // guards what follows
	byKey map[refusalKey]refusal
}

type refusalKey struct{ user, plugin, tool, arguments string }

type refusal struct {
	part string
	at   time.Time
}

func (c *call) refusalKey() refusalKey {
	return refusalKey{c.Caller.User, c.entry.Plugin, c.entry.Spec.Name, c.hash}
}

// note remembers the part of a call that was refused.
func (r *refusals) note(c *call, part string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey == nil {
		r.byKey = make(map[refusalKey]refusal)
	}
	if len(r.byKey) >= maxRefusals {
		maps.DeleteFunc(r.byKey, func(_ refusalKey, old refusal) bool { return time.Since(old.at) > keepRefusal })
	}
	if len(r.byKey) >= maxRefusals {
		oldest := c.refusalKey()
		at := time.Now()
		for key, old := range r.byKey {
			if old.at.Before(at) {
				oldest, at = key, old.at
			}
		}
		delete(r.byKey, oldest)
	}
	r.byKey[c.refusalKey()] = refusal{part, time.Now()}
}

// of returns the part of an equal call that was refused, "" if there is none.
func (r *refusals) of(c *call) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.byKey[c.refusalKey()]; ok && time.Since(last.at) <= keepRefusal {
		return last.part
	}
	return ""
}
