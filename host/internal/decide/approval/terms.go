package approval

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxFor bounds how long a grant that ends by itself lasts.
	maxFor = 366 * 24 * time.Hour
	// maxUses bounds the uses of a grant that ends with them.
	maxUses = 1_000_000
	// maxCommands bounds the commands of one answer.
	maxCommands = 32
)

// Terms say which later calls of the user an answer covers beside the one that was
// asked about, and for how long. The zero value covers every call of the tool; of a call
// with shell commands, those that hold no other command than these; until it is revoked.
type Terms struct {
	// Plugin covers every tool of the plugin.
	Plugin bool
	// Path covers only calls all of whose paths are this one or below it. A relative
	// one is relative to the workspace. "" is no bound.
	Path string
	// Commands cover calls whose shell commands are, or begin with, these; see
	// [command.ParsePattern]. Without Path, they have to run in the workspace.
	Commands []string
	// Session ends the grant with the session of the call.
	Session bool
	// For ends it after some time, and Uses after some calls; 0 is no end.
	For  time.Duration
	Uses int64
}

// grants returns what an answer to a record gives, without ids. They cover the call that
// was asked about, else the person means another one.
func (t *Terms) grants(r *Record) ([]Grant, error) {
	base := Grant{User: r.User, Plugin: r.Plugin, Tool: r.Tool, MaxUses: t.Uses, CreatedBy: r.DecidedBy, Approval: r.ID, Created: r.Decided}
	if t.Plugin {
		base.Tool = ""
	}
	base.Given = r.Given.Of(base.Tool)
	switch {
	case t.For < 0 || t.For > maxFor || t.For%time.Millisecond != 0:
		return nil, tool.Errorf(tool.InvalidArgument, "A grant cannot last for %s; expected whole milliseconds, at most %s", t.For, maxFor)
	case t.For > 0:
		base.Expires = r.Decided.Add(t.For)
	}
	if t.Uses < 0 || t.Uses > maxUses {
		return nil, tool.Errorf(tool.InvalidArgument, "A grant cannot be for %d uses; expected at most %d, or 0 for no bound", t.Uses, maxUses)
	}
	if t.Session {
		if !auth.SessionEnds(r.Session) {
			return nil, tool.Errorf(tool.InvalidArgument, "The call belongs to no session that ends").
				WithHint("only MCP clients have such; let the grant end in another way")
		}
		base.Session = r.Session
	}
	var err error
	if base.Path, err = t.path(r); err != nil {
		return nil, err
	}
	patterns, err := t.patterns(r)
	if err != nil {
		return nil, err
	}
	if folder := r.Subject.Folder; len(patterns) > 0 && base.Path == "" && folder != "" {
		if !allWithin(r.Subject.Paths, folder) {
			return nil, tool.Errorf(tool.InvalidArgument, "The command runs outside of the workspace, in %s", tool.VisibleName(outside(r.Subject.Paths, folder))).
				WithHint("say where later ones may run, by a path")
		}
		base.Path = folder // where a command runs makes what it does
	}
	grants := []Grant{base}
	for i := range patterns {
		if i > 0 {
			grants = append(grants, base)
		}
		grants[i].Command = &patterns[i]
	}
	for i := range grants {
		grants[i].Covers, grants[i].State = grants[i].describe(), GrantActive
	}
	return grants, nil
}

// path returns the absolute path that the terms name.
func (t *Terms) path(r *Record) (string, error) {
	name := t.Path
	switch {
	case name == "":
		return "", nil
	case len(name) > maxName || strings.ContainsRune(name, 0):
		return "", tool.Errorf(tool.InvalidArgument, "The path of the grant is no path: it is longer than %d bytes, or holds a NUL", maxName)
	case !filepath.IsAbs(name) && r.Subject.Folder == "":
		return "", tool.Errorf(tool.InvalidArgument, "The path %s is relative, and there is no workspace", tool.VisibleName(name)).WithHint("name it from the root")
	case !filepath.IsAbs(name):
		name = path.Join(r.Subject.Folder, name)
	}
	name = path.Clean(name)
	if !allWithin(r.Subject.Paths, name) {
		if len(r.Subject.Paths) == 0 {
			return "", tool.Errorf(tool.InvalidArgument, "The call names no path, so a grant for %s would not cover it", tool.VisibleName(name))
		}
		return "", tool.Errorf(tool.InvalidArgument, "A grant for %s would not cover this call, which names %s", tool.VisibleName(name), tool.VisibleName(outside(r.Subject.Paths, name)))
	}
	return name, nil
}

// outside returns the first path that is not in folder.
func outside(paths []string, folder string) string {
	i := slices.IndexFunc(paths, func(name string) bool { return !policy.Within(name, folder) })
	return paths[max(i, 0)]
}

// patterns returns the commands that the terms cover, for a call without any none.
func (t *Terms) patterns(r *Record) ([]command.Pattern, error) {
	asked := r.Subject.Commands
	switch {
	case len(t.Commands) > maxCommands:
		return nil, tool.Errorf(tool.InvalidArgument, "%d commands are more than the %d of one answer", len(t.Commands), maxCommands)
	case len(asked) == 0 && len(t.Commands) > 0:
		return nil, tool.Errorf(tool.InvalidArgument, "The call holds no shell command that is asked about")
	case len(t.Commands) == 0: // just these
		var these []command.Pattern
		for _, c := range asked {
			these = addPattern(these, command.Pattern{Words: c.Words})
		}
		return these, nil
	}
	var patterns []command.Pattern
	for _, text := range t.Commands {
		p, err := command.ParsePattern(text)
		if err != nil {
			return nil, tool.Errorf(tool.InvalidArgument, "The command %s cannot be granted: %v", tool.VisibleName(text), err).
				WithHint(`name one command, with " *" at its end if further words may follow`)
		}
		if !slices.ContainsFunc(asked, func(c Command) bool { return p.Covers(c.Words, c.Least) }) {
			return nil, uncovering(p, asked)
		}
		patterns = addPattern(patterns, p)
	}
	for _, c := range asked {
		if !slices.ContainsFunc(patterns, func(p command.Pattern) bool { return p.Covers(c.Words, c.Least) }) {
			return nil, uncovered(c)
		}
	}
	return patterns, nil
}

func addPattern(all []command.Pattern, p command.Pattern) []command.Pattern {
	if slices.ContainsFunc(all, func(other command.Pattern) bool { return other.Open == p.Open && slices.Equal(other.Words, p.Words) }) {
		return all
	}
	return append(all, p)
}

// uncovering is the error of a pattern that covers nothing of the call.
func uncovering(p command.Pattern, asked []Command) error {
	var all []string
	for _, c := range asked {
		all = append(all, shortest(c))
	}
	return tool.Errorf(tool.InvalidArgument, "A grant for %s would not cover this call", tool.VisibleName(p.String())).
		WithHint("what would: %s", bounded(strings.Join(all, ", "), 4*maxSummary))
}

// uncovered is the error of terms that leave out a command of the call.
func uncovered(c Command) error {
	return tool.Errorf(tool.InvalidArgument, "The call also runs %s, which the grant would not cover",
		tool.VisibleName(command.Pattern{Words: c.Words}.String())).WithHint("add %s", shortest(c))
}

// shortest is what covers a command, in words: itself, and the least beginning.
func shortest(c Command) string {
	whole := tool.VisibleName(command.Pattern{Words: c.Words}.String())
	if c.Least > len(c.Words) {
		return whole
	}
	return whole + " or " + tool.VisibleName(command.Pattern{Words: c.Words[:c.Least], Open: true}.String())
}
