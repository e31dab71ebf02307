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
	// maxFor bounds the duration of a grant that expires.
	maxFor = 366 * 24 * time.Hour
	// maxUses bounds the number of uses of a grant.
	maxUses = 1_000_000
	// maxCommands bounds the commands of one answer.
	maxCommands = 32
)

// Terms are which later calls of the user an answer covers, and for how long. The zero
// value covers every call of the tool until it is revoked; for a call with shell commands,
// the calls that contain no other commands.
type Terms struct {
	// Plugin covers every tool of the plugin.
	Plugin bool
	// Path limits the grant to calls whose paths are all this one or below it. A relative
	// path is relative to the workspace. "" means no limit.
	Path string
	// Commands cover calls whose shell commands are, or start with, these; see
	// [command.ParsePattern]. Without Path, the commands must run in the workspace.
	Commands []string
	// Session ends the grant with the session of the call.
	Session bool
	// For ends the grant after a duration, and Uses after a number of calls; 0 means no
	// end.
	For  time.Duration
	Uses int64
}

// grants returns the grants that an answer to a record gives, without ids. It refuses
// terms that do not cover the call that was asked about.
func (t *Terms) grants(r *Record) ([]Grant, error) {
	base := Grant{User: r.User, Plugin: r.Plugin, Tool: r.Tool, MaxUses: t.Uses, CreatedBy: r.DecidedBy, Approval: r.ID, Created: r.Decided}
	base.Host = r.Subject.Host
	switch {
	case base.Host != "" && (t.Plugin || t.Path != "" || len(t.Commands) > 0):
		return nil, tool.Errorf(tool.InvalidArgument, "A grant for a connection covers %s only; expected no plugin, path or command", base.Host).
			WithHint("let it end with the session, after a time or after a number of uses; for other hosts, list them in network.allow")
	case t.Plugin:
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
				WithHint("only sessions of MCP clients end; end the grant in another way")
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
				WithHint("name the folder where later commands may run")
		}
		base.Path = folder // the effect of a command depends on its directory
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

// path returns the absolute path of the terms; "" if they name none.
func (t *Terms) path(r *Record) (string, error) {
	name := t.Path
	switch {
	case name == "":
		return "", nil
	case len(name) > maxName || strings.ContainsRune(name, 0):
		return "", tool.Errorf(tool.InvalidArgument, "The path of the grant is not valid: it is longer than %d bytes, or contains a NUL", maxName)
	case !filepath.IsAbs(name) && r.Subject.Folder == "":
		return "", tool.Errorf(tool.InvalidArgument, "The path %s is relative, and there is no workspace", tool.VisibleName(name)).WithHint("use an absolute path")
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

// patterns returns the commands that the terms cover; none for a call without commands.
func (t *Terms) patterns(r *Record) ([]command.Pattern, error) {
	asked := r.Subject.Commands
	switch {
	case len(t.Commands) > maxCommands:
		return nil, tool.Errorf(tool.InvalidArgument, "%d commands are more than the %d of one answer", len(t.Commands), maxCommands)
	case len(asked) == 0 && len(t.Commands) > 0:
		return nil, tool.Errorf(tool.InvalidArgument, "The call has no shell command that needs an answer")
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

// uncovering returns the error of a pattern that covers no command of the call.
func uncovering(p command.Pattern, asked []Command) error {
	var all []string
	for _, c := range asked {
		all = append(all, shortest(c))
	}
	return tool.Errorf(tool.InvalidArgument, "A grant for %s would not cover this call", tool.VisibleName(p.String())).
		WithHint("what would: %s", bounded(strings.Join(all, ", "), 4*maxSummary))
}

// uncovered returns the error of terms that do not cover a command of the call.
func uncovered(c Command) error {
	return tool.Errorf(tool.InvalidArgument, "The call also runs %s, which the grant would not cover",
		tool.VisibleName(command.Pattern{Words: c.Words}.String())).WithHint("add %s", shortest(c))
}

// shortest names the patterns that cover a command: itself, and its shortest beginning.
func shortest(c Command) string {
	whole := tool.VisibleName(command.Pattern{Words: c.Words}.String())
	if c.Least > len(c.Words) {
		return whole
	}
	return whole + " or " + tool.VisibleName(command.Pattern{Words: c.Words[:c.Least], Open: true}.String())
}
