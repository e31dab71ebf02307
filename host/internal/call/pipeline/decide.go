package pipeline

import (
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/internal/links"
	"github.com/toolhost/toolhost/sdk/tool"
)

// decide applies the policy to the call and refuses a call that is denied.
func (p *Pipeline) decide(c *call) error {
	c.decision = p.decision(c)
	c.sensitive = c.named // links that change later do not add files
	for _, note := range c.decision.Notes {
		p.opts.Logger.Info("the policy", "call", c.id, "tool", c.entry.Spec.Name, "note", note)
	}
	p.announce(c)
	if c.decision.Verdict == policy.Deny {
		return denied(c.decision)
	}
	return nil
}

// input describes a call to the policy.
func (s *Settings) input(c *call) policy.Input {
	return s.inputOf(c, s.commands(c), s.paths(c))
}

// inputOf describes a call that runs the commands and names the paths to the policy.
func (s *Settings) inputOf(c *call, commands []policy.Command, paths []policy.Path) policy.Input {
	in := policy.Input{
		Plugin: c.entry.Plugin, Tool: c.entry.Spec.Name, Tier: c.tier, Arguments: c.arguments.Values,
		Caller: policy.Caller{User: c.Caller.User, Client: c.Caller.Client, Session: c.Caller.Session, Roles: c.Caller.Roles.Names(), Groups: c.Caller.Groups},
		Asks:   c.entry.Spec.Asks, Folders: s.resolved, Paths: paths, Commands: commands,
		URLs: c.entry.ValuesOf(tool.RoleURL, c.arguments.Values),
	}
	doubtRepositories(&in)
	s.notePatches(&in)
	s.noteSearches(&in)
	in.Linked = linked(&in)
	for _, read := range in.Commands {
		for _, name := range s.Policy.Touched(&in, read) {
			read.Line.Doubt("it may change " + tool.VisibleName(name) + ", which is protected by its name")
		}
	}
	return in
}

// maxLinked bounds the words in commands whose symbolic links are followed.
const maxLinked = 20_000

// linked returns the targets of words in the commands that are symbolic links or lead through
// them.
func linked(in *policy.Input) []policy.Path {
	var all []policy.Path
	looked, dirs := 0, map[string]string{}
	resolve := func(path string) string {
		if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSymlink {
			return links.Resolve(path)
		}
		dir, name := filepath.Split(path) // thousands of words may name files in one directory
		if _, ok := dirs[dir]; !ok {
			dirs[dir] = links.Resolve(filepath.Clean(dir))
		}
		return filepath.Join(dirs[dir], name)
	}
	for path := range named(in) {
		if looked++; looked > maxLinked {
			return append(all, policy.Path{Name: path.Name})
		}
		clean, follow := filepath.Clean(path.Absolute), resolve
		if clean != path.Absolute { // it has ".."
			follow = links.Resolve
		}
		if target := follow(path.Absolute); target != clean {
			all = append(all, policy.Path{Name: path.Name, Absolute: target})
		}
	}
	return all
}

// named yields each path that a word in the commands may name, once. The path is clean, except
// that it keeps "..": the parent of a directory is elsewhere if the directory is a link.
func named(in *policy.Input) iter.Seq[policy.Path] {
	return func(yield func(policy.Path) bool) {
		yielded := map[string]bool{}
		for _, c := range in.Commands {
			bases, _ := in.Places(c.Line)
			for _, m := range c.Line.Mentions {
				if m.Glob {
					continue
				}
				for _, base := range bases {
					path := m.Text
					if !filepath.IsAbs(path) {
						path = base + string(filepath.Separator) + path
					}
					if !climbs(m.Text) {
						path = filepath.Clean(path)
					}
					if yielded[path] {
						continue
					}
					if yielded[path] = true; !yield(policy.Path{Name: m.Text, Absolute: path}) {
						return
					}
				}
			}
		}
	}
}

// climbs reports whether a path leads through the parent of a directory.
func climbs(path string) bool {
	return slices.Contains(strings.Split(path, string(filepath.Separator)), "..")
}

// decision returns the policy's decision about the call, under the grants that
// cover it.
func (p *Pipeline) decision(c *call) policy.Decision {
	settings := p.current(c)
	rules, in := settings.Policy, settings.input(c)
	c.grantable = approval.Call{}
	c.commands, c.named = in.Commands, rules.SensitiveOf(&in)
	decision := rules.Decide(in)
	approvers := decision.Approvers
	if c.entry.OfHost() {
		decision.Change = "" // the configuration has no block for these tools
	}
	if decision.Standing {
		c.grantable = p.grantable(c, settings, decision)
		decision = p.underGrants(rules, in, decision, &c.grantable)
	}
	decision = settings.deferred(c, decision)
	if why := p.refusals.of(c); why != "" && decision.Verdict == policy.Allow {
		decision = policy.Decision{Verdict: policy.Ask, Rule: "a part of the command that was refused when it ran: " + why, NoGrant: "the whole command is asked about once"}
	}
	if (decision.Verdict == policy.Allow || decision.Verdict == policy.Ask) && p.unhidden(c) {
		decision = policy.Decision{
			Verdict: policy.Confirm, Rule: "paths.forbidden, not all of which is hidden",
			NoGrant: "there was too much to look for all of it; toolhost plugins list says where",
		}
	}
	if decision.Verdict == policy.Allow || decision.Verdict == policy.Ask {
		if why := p.full(c); why != "" {
			decision = policy.Decision{Verdict: policy.Confirm, Rule: "workspace_quota: " + why, NoGrant: "the workspace is full: " + why}
		}
	}
	if decision.Verdict == policy.Ask || decision.Verdict == policy.Confirm {
		decision.Approvers = max(decision.Approvers, approvers) // also if another reason to ask came first
	}
	return decision
}

// full returns why the caller's workspace has no room for what the call may write, or "".
func (p *Pipeline) full(c *call) string {
	if c.tier == tool.ReadOnly || c.workspace == "" || !c.entry.OwnProcesses {
		return "" // a process of everybody sees no workspace
	}
	return p.opts.Full(c.Caller.User)
}

// grantable returns the call as grants see it.
func (p *Pipeline) grantable(c *call, s *Settings, d policy.Decision) approval.Call {
	basis := p.opts.Catalog.Basis(c.entry.Plugin)
	basis.Program = c.entry.Digest // a grant does not cover another program
	return approval.Call{
		User: c.Caller.User, Session: c.Caller.Session, Plugin: c.entry.Plugin, Tool: c.entry.Spec.Name,
		Subject: s.subject(c, d), Basis: basis,
	}
}

// underGrants repeats the decision with the grants that cover the call, if there are any.
func (p *Pipeline) underGrants(rules *policy.Rules, in policy.Input, d policy.Decision, call *approval.Call) policy.Decision {
	if in.Grants = p.opts.Grants.Covering(call); len(in.Grants) > 0 {
		return rules.Decide(in)
	}
	return d
}

// subject returns what a grant for a call can be about.
func (s *Settings) subject(c *call, d policy.Decision) approval.Subject {
	var about approval.Subject
	for _, segment := range d.Unanswered {
		about.Commands = append(about.Commands, approval.Command{Words: segment.Words, Least: segment.Least})
	}
	if len(s.Roots) == 0 {
		return about
	}
	about.Folder = links.Resolve(s.Roots[0])
	for _, name := range c.names {
		written := s.absolute(name)
		// Add the named file, which may be a link, and the link's target.
		for _, path := range []string{filepath.Join(links.Resolve(filepath.Dir(written)), filepath.Base(written)), s.target(name)} {
			if !slices.Contains(about.Paths, path) {
				about.Paths = append(about.Paths, path)
			}
		}
	}
	if len(about.Commands) > 0 && len(about.Paths) == 0 {
		about.Paths = []string{about.Folder} // a command that names no path runs there
	}
	return about
}

// absolute returns the absolute, clean path that an argument names.
func (s *Settings) absolute(name string) string {
	if !filepath.IsAbs(name) {
		name = filepath.Join(s.Roots[0], name)
	}
	return filepath.Clean(name)
}

// target returns the absolute path that an argument leads to, through symbolic links.
func (s *Settings) target(name string) string {
	if !filepath.IsAbs(name) {
		name = s.Roots[0] + string(filepath.Separator) + name
	}
	return links.Resolve(name)
}

// commands reads the shell commands in the arguments of a call. It sets c.tree to the command
// that runs by its syntax tree.
func (s *Settings) commands(c *call) []policy.Command {
	var all []policy.Command
	byTree := c.byTree()
	for _, role := range []tool.Role{tool.RoleCommand, tool.RoleScript} {
		for _, text := range c.entry.ValuesOf(role, c.arguments.Values) {
			if role == tool.RoleScript && text == "" {
				continue // no input
			}
			read := policy.Command{Line: command.Parse(text, s.Policy.Reading(s.Roots)), Script: role == tool.RoleScript}
			if !read.Script && text == byTree {
				c.tree = read.Line
			}
			read.Text = read.Script || byTree == "" || !read.Line.HasTree()
			all = append(all, read)
		}
	}
	for _, words := range c.entry.ListsOf(tool.RoleArgv, c.arguments.Values) {
		all = append(all, policy.Command{Line: command.ParseArgv(words, nil, s.Policy.Reading(s.Roots))})
	}
	return all
}

// denied returns the error of a denied call.
func denied(d policy.Decision) error {
	if filepath.IsAbs(d.Where) {
		d.Where = filepath.Base(d.Where) // hide the host's folders from models
	}
	rule := decidedBy(d)
	refused := tool.Errorf(tool.PermissionDenied, "%s", d.Reason)
	if d.Change == "" {
		return refused.WithHint("decided by %s", rule)
	}
	return refused.WithHint("decided by %s; to change it: %s", rule, d.Change)
}

// decidedBy returns the name and the place of the rule that decided.
func decidedBy(d policy.Decision) string {
	if d.Where == "" {
		return d.Rule
	}
	return d.Rule + " at " + d.Where
}

// paths returns the absolute paths that the arguments of a call name, as written, and their
// targets where symbolic links lead elsewhere.
func (s *Settings) paths(c *call) []policy.Path {
	if len(s.Roots) == 0 {
		return nil
	}
	var paths []policy.Path
	for _, name := range c.names {
		written := s.absolute(name)
		paths = append(paths, policy.Path{Name: name, Absolute: written})
		if target := s.target(name); target != written {
			paths = append(paths, policy.Path{Name: name, Absolute: target})
		}
	}
	return paths
}
