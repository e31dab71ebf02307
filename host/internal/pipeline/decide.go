package pipeline

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/command"
	"github.com/toolhost/toolhost/host/internal/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// decide asks what the policy says of the call. It refuses one that is denied.
func (p *Pipeline) decide(c *call) error {
	c.decision = p.judge(c)
	for _, note := range c.decision.Notes {
		p.opts.Logger.Info("the policy", "call", c.id, "tool", c.entry.Spec.Name, "note", note)
	}
	p.announce(c)
	if c.decision.Verdict == policy.Deny {
		return denied(c.decision)
	}
	return nil
}

func (p *Pipeline) rules() *policy.Rules { return p.applied.Load().Policy }

func (p *Pipeline) roots() []string { return p.applied.Load().Roots }

// input describes a call to the policy.
func (s *Settings) input(c *call) policy.Input {
	return policy.Input{
		Plugin: c.entry.Plugin, Tool: c.entry.Spec.Name, Tier: c.tier, Arguments: c.arguments.Values,
		Caller: policy.Caller{User: c.Caller.User, Client: c.Caller.Client, Session: c.Caller.Session, Roles: c.Caller.Roles.Names()},
		Asks:   c.entry.Spec.Asks, Folders: s.Roots, Paths: s.paths(c), Commands: s.commands(c),
		URLs: c.entry.ValuesOf(tool.RoleURL, c.arguments.Values),
	}
}

// judge asks the policy, and once more with the standing answer that covers
// the call if that could change anything.
func (p *Pipeline) judge(c *call) policy.Decision {
	applied := p.applied.Load()
	rules, in := applied.Policy, applied.input(c)
	c.commands = in.Commands
	decision := rules.Decide(in)
	if c.entry.OfHost() {
		decision.Change = "" // no block of the configuration is about these tools
	}
	if !decision.Standing {
		return decision
	}
	if grant, ok := p.opts.Grants.Covering(c.Caller.User, in.Plugin, in.Tool); ok {
		in.Grant = grant.ID
		decision = rules.Decide(in)
	}
	return decision
}

// commands reads the shell commands in the arguments of a call.
func (s *Settings) commands(c *call) []policy.Command {
	var all []policy.Command
	for _, role := range []tool.Role{tool.RoleCommand, tool.RoleScript} {
		for _, text := range c.entry.ValuesOf(role, c.arguments.Values) {
			all = append(all, policy.Command{Line: command.Parse(text, s.Policy.Reading(s.Roots)), Script: role == tool.RoleScript})
		}
	}
	return all
}

// denied is what the caller of a denied call reads.
func denied(d policy.Decision) error {
	rule := decidedBy(d)
	refused := tool.Errorf(tool.PermissionDenied, "%s", d.Reason)
	if d.Change == "" {
		return refused.WithHint("decided by %s", rule)
	}
	return refused.WithHint("decided by %s; to change it: %s", rule, d.Change)
}

// decidedBy names what decided, and its place.
func decidedBy(d policy.Decision) string {
	if d.Where == "" {
		return d.Rule
	}
	return d.Rule + " at " + d.Where
}

// paths returns the absolute paths that the arguments of a call name, without
// the folders that callers work in: as written and, for a call that changes
// something, as they lead through symbolic links too.
func (s *Settings) paths(c *call) []policy.Path {
	if len(s.Roots) == 0 {
		return nil
	}
	var paths []policy.Path
	for _, name := range c.entry.ValuesOf(tool.RolePath, c.arguments.Values) {
		written := name
		if !filepath.IsAbs(name) {
			written = filepath.Join(s.Roots[0], name)
		}
		written = filepath.Clean(written)
		paths = append(paths, policy.Path{Name: name, Absolute: written})
		if c.tier == tool.ReadOnly {
			continue
		}
		if leads := resolve(written); leads != written {
			paths = append(paths, policy.Path{Name: name, Absolute: leads})
		}
	}
	return slices.DeleteFunc(paths, func(path policy.Path) bool { return slices.Contains(s.spelled, path.Absolute) })
}

// resolve follows the symbolic links of the part of a path that exists. What it
// returns may be wrong a moment later: the plugin, which opens files relative
// to its folders, is what holds.
func resolve(path string) string {
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) || strings.ContainsRune(at, 0) {
			return path
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}
