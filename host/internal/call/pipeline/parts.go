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

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/internal/links"
	"github.com/toolhost/toolhost/sdk/tool"
)

// byTree returns the command in the arguments of a call whose tool executes commands by their
// syntax tree. It returns "" if there is none, or more than one.
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

// commandTree returns the syntax tree of a command that no person has approved as text; nil if
// a shell may read the text.
func (p *Pipeline) commandTree(c *call) ([]byte, error) {
	if c.tree == nil || c.approval.ID != "" || p.current(c).Policy.TextAllowed() {
		return nil, nil
	}
	tree, err := c.tree.Tree()
	if err == nil && len(tree) == 0 {
		err = fmt.Errorf("the command of call %s has no tree", c.id)
	}
	return tree, err
}

// deferred decides again about a call that needs approval and whose command runs by its syntax
// tree. It treats words that are unknown until the command runs as harmless, since mayRun
// decides about them then.
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

// mayRun decides, by the current policy, whether a part of a command that runs by its syntax
// tree may run.
func (p *Pipeline) mayRun(c *call, e tool.Execution) *tool.Error {
	d := p.decidePart(c, &e)
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

// decidePart decides about a part of a command as if a call of the same tool ran only this
// part, in its directory.
func (p *Pipeline) decidePart(c *call, e *tool.Execution) policy.Decision {
	if place := cmp.Or(e.File, e.Directory); !filepath.IsAbs(place) {
		return policy.Decision{Verdict: policy.Confirm, Rule: "a path that is not absolute"}
	}
	settings := p.current(c)
	in := settings.inputOfPart(c, e)
	d := settings.Policy.Decide(in)
	if d.Standing {
		call := p.grantable(c, settings, d)
		d = p.underGrants(settings.Policy, in, d, &call)
	}
	return d
}

// inputOfPart describes one part of a command to the policy.
func (s *Settings) inputOfPart(c *call, e *tool.Execution) policy.Input {
	reading := s.Policy.Reading(s.Roots)
	var line *command.Line
	if e.Argv == nil {
		line = command.ParseOpen(s.asConfigured(e.File), e.Write, reading)
	} else {
		line = command.ParseArgv(e.Argv, e.Environment, reading)
	}
	paths := s.paths(c)
	if dir := s.asConfigured(links.Resolve(e.Directory)); len(s.Roots) == 0 || dir != s.Roots[0] {
		paths = append(paths, policy.Path{Name: e.Directory, Absolute: dir})
	}
	return s.inputOf(c, []policy.Command{{Line: line}}, paths)
}

// maxJudged bounds the parts of a command that are decided in advance.
const maxJudged = 16

// judged decides in advance about the parts of a command whose words are all literal. It skips
// a part if the decision depends on a git repository, the files in a directory, a symbolic link
// or a grant. So the decision still holds when the part runs, unless the policy changes, which
// [Pipeline.Apply] waits for, or a link appears, which the sdk checks.
func (s *Settings) judged(c *call) []tool.Judged {
	if len(s.Roots) == 0 {
		return nil
	}
	dir := links.Resolve(s.Roots[0])
	if len(c.names) > 0 {
		dir = s.target(c.names[0]) // in another directory, the parts ask
	}
	var parts []tool.Execution
	for _, argv := range c.tree.Literals() {
		part := tool.Execution{Argv: argv, Directory: dir}
		parts = append(parts, part)
		if argv[0] == "read" && strings.Contains(c.tree.Text(), "IFS= read") { // in loops over lines
			part.Environment = []string{"IFS="}
			parts = append(parts, part)
		}
	}
	for _, name := range c.tree.Writes {
		parts = append(parts, tool.Execution{File: name, Directory: dir, Write: true})
	}
	var judged []tool.Judged
	for _, e := range parts[:min(len(parts), maxJudged)] {
		if e.Argv == nil && !filepath.IsAbs(e.File) {
			continue
		}
		in := s.inputOfPart(c, &e)
		if slices.ContainsFunc(in.Commands[0].Line.Mentions, func(m command.Mention) bool { return climbs(m.Text) }) {
			continue // the sdk would look for links on another path
		}
		linked := len(in.Linked) > 0 || slices.ContainsFunc(in.Paths, func(p policy.Path) bool { return links.Resolve(p.Absolute) != p.Absolute })
		looked := slices.ContainsFunc(in.Commands[0].Line.Segments, func(s command.Segment) bool { return usesGit(&s) || s.Search != nil })
		if linked || looked || s.Policy.Decide(in).Verdict != policy.Allow {
			continue
		}
		j := tool.Judged{Execution: e, Unlinked: []string{dir}}
		for _, path := range in.Paths {
			j.Unlinked = append(j.Unlinked, path.Absolute)
		}
		for path := range named(&in) {
			j.Unlinked = append(j.Unlinked, path.Absolute)
		}
		judged = append(judged, j)
	}
	return judged
}

// advanceFor is how long answers in advance count. After that, the parts of a command ask.
const advanceFor = time.Second

// advance tracks how long the answers in advance of all calls count. The zero value is ready to
// use.
type advance struct {
	mu   sync.Mutex // guards last
	last time.Time  // the latest result of until
}

// until returns when answers end that are given now.
func (a *advance) until() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = time.Now().Add(advanceFor)
	return a.last
}

// wait returns when all earlier answers have ended.
func (a *advance) wait() {
	a.mu.Lock()
	timer := time.NewTimer(time.Until(a.last))
	a.mu.Unlock()
	<-timer.C
}

// asConfigured returns a path in the workspace as the configuration writes it.
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

// shownExecution describes a part of a command for models and people.
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
	// maxRefusals bounds the remembered refusals; the oldest is dropped first.
	maxRefusals = 1000
	// keepRefusal is how long a refusal is remembered.
	keepRefusal = time.Hour
)

// refusals remembers calls with a part that was refused at run time. If the same call is made
// again, a person is asked about the whole command. The zero value is ready to use.
type refusals struct {
	mu    sync.Mutex // guards the fields below
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

// note remembers the refused part of a call.
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

// of returns the refused part of an equal call, or "".
func (r *refusals) of(c *call) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.byKey[c.refusalKey()]; ok && time.Since(last.at) <= keepRefusal {
		return last.part
	}
	return ""
}
