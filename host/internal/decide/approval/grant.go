package approval

import (
	"slices"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
)

// Grant is a standing answer: the calls of a user that it covers run without a question
// where the policy allows it.
type Grant struct {
	// ID is the grant's own, "gr_" and a UUIDv7.
	ID     string `json:"id"`
	User   string `json:"user"`
	Plugin string `json:"plugin"`
	// Tool is the tool's name; "" means every tool of the plugin.
	Tool string `json:"tool,omitempty"`
	// Path limits the grant to calls whose paths are all this one, absolute and clean,
	// or below it.
	Path string `json:"path,omitempty"`
	// Command is the shell command that the grant covers. A grant without it covers only
	// calls without commands. A call runs if each of its commands is covered.
	Command *command.Pattern `json:"command,omitempty"`
	// Covers describes what the grant covers.
	Covers string `json:"covers"`
	// Given is the program and the tools that the grant was given for: it covers no call
	// of another program, or of a tool with another schema or tier. It is zero for grants
	// of versions that did not record it.
	Given catalog.Basis `json:"given,omitzero"`
	// Paused is why the grant covers nothing now; nil if it is not paused.
	Paused *Pause `json:"paused,omitempty"`
	// Session, Expires and MaxUses end the grant: with a session of its user, at a time,
	// after a number of calls. Zero means no end.
	Session string    `json:"session,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	MaxUses int64     `json:"max_uses,omitempty"`
	// State is whether the grant is in force, or why it is not.
	State GrantState `json:"state"`
	// CreatedBy is the approver, and Approval is the id of the record whose answer gave
	// the grant.
	CreatedBy string    `json:"created_by"`
	Approval  string    `json:"approval"`
	Created   time.Time `json:"created"`
	// Uses and LastUsed may lack the last seconds before the host was killed, except for
	// a grant with MaxUses.
	Uses     int64     `json:"uses"`
	LastUsed time.Time `json:"last_used,omitzero"`
	// Revoked is zero if the grant was not revoked.
	Revoked   time.Time `json:"revoked,omitzero"`
	RevokedBy string    `json:"revoked_by,omitempty"`
	// Confirmed is when the grant was last confirmed; zero if never.
	Confirmed   time.Time `json:"confirmed,omitzero"`
	ConfirmedBy string    `json:"confirmed_by,omitempty"`
}

// GrantState is the state of a grant.
type GrantState string

// The states of a grant.
const (
	GrantActive GrantState = "active"
	// GrantPaused is the state of a grant that was given for another program or another
	// tool: it takes effect again once it is confirmed.
	GrantPaused  GrantState = "paused"
	GrantRevoked GrantState = "revoked"
	GrantExpired GrantState = "expired"
	// GrantUsed is the state of a grant without uses left.
	GrantUsed GrantState = "used"
	// GrantEnded is the state of a grant whose session has ended.
	GrantEnded GrantState = "ended"
)

// Subject is the part of a call that a grant can be about, beside its tool.
type Subject struct {
	// Folder is the base of relative paths; "" if there is none.
	Folder string `json:"folder,omitempty"`
	// Paths are the paths that the arguments name, absolute and clean: as written, and
	// with symbolic links resolved.
	Paths []string `json:"paths,omitempty"`
	// Commands are the shell commands that grants must cover.
	Commands []Command `json:"commands,omitempty"`
}

// Command is a shell command of a [Subject].
type Command struct {
	// Words and Least are fields of [command.Segment].
	Words []string `json:"words"`
	Least int      `json:"least"`
}

// allWithin reports whether there are paths, and each is folder or below it.
func allWithin(paths []string, folder string) bool {
	return len(paths) > 0 && !slices.ContainsFunc(paths, func(name string) bool { return !policy.Within(name, folder) })
}

// describe describes what the grant covers.
func (g *Grant) describe() string {
	by, where := g.Tool, ""
	if g.Tool == "" {
		by = "every tool of " + g.Plugin
	}
	switch {
	case g.Path != "" && g.Command != nil:
		where = ", in " + g.Path
	case g.Path != "":
		where = ", of paths in " + g.Path
	}
	switch {
	case g.Command == nil:
		return "calls of " + by + where
	case g.Command.Open:
		return "commands of " + by + " that are " + command.Pattern{Words: g.Command.Words}.String() + " and plain words" + where
	}
	return "the command " + g.Command.String() + " of " + by + where
}
