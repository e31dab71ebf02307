package approval

import (
	"slices"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
)

// Grant is a standing answer: calls of a user that it covers run unasked where the
// policy lets a grant answer.
type Grant struct {
	// ID is the grant's own, "gr_" and a UUIDv7.
	ID     string `json:"id"`
	User   string `json:"user"`
	Plugin string `json:"plugin"`
	// Tool is the tool's name; "" is every tool of the plugin.
	Tool string `json:"tool,omitempty"`
	// Path covers only calls all of whose paths are this one, absolute and clean, or
	// below it.
	Path string `json:"path,omitempty"`
	// Command covers one shell command of a call. A grant without it covers no call that
	// has any, and a call runs if each of its commands is covered.
	Command *command.Pattern `json:"command,omitempty"`
	// Covers says in words what the grant covers.
	Covers string `json:"covers"`
	// Given is what the grant was given for: it covers no call of another program, or
	// of a tool with another schema or tier. The zero Given is that of a grant from before
	// this was recorded.
	Given catalog.Basis `json:"given,omitzero"`
	// Paused says why a grant covers nothing now; nil if it is not paused.
	Paused *Pause `json:"paused,omitempty"`
	// Session, Expires and MaxUses end the grant: with a session of its user, at a time,
	// after so many calls. Zero is no end.
	Session string    `json:"session,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	MaxUses int64     `json:"max_uses,omitempty"`
	// State says whether the grant is in force, or why it is not.
	State GrantState `json:"state"`
	// CreatedBy is the approver, and Approval the id of the record that was
	// answered so.
	CreatedBy string    `json:"created_by"`
	Approval  string    `json:"approval"`
	Created   time.Time `json:"created"`
	// Uses and LastUsed may lack the last seconds before the host was killed, but for a
	// grant with MaxUses.
	Uses     int64     `json:"uses"`
	LastUsed time.Time `json:"last_used,omitzero"`
	// Revoked is zero for a grant that nobody has revoked.
	Revoked   time.Time `json:"revoked,omitzero"`
	RevokedBy string    `json:"revoked_by,omitempty"`
	// Confirmed is when the grant was last confirmed; zero for never.
	Confirmed   time.Time `json:"confirmed,omitzero"`
	ConfirmedBy string    `json:"confirmed_by,omitempty"`
}

// GrantState is where a grant stands.
type GrantState string

// The states of a grant.
const (
	GrantActive GrantState = "active"
	// GrantPaused: it was given for another program or another tool; it is in force again
	// once it is confirmed.
	GrantPaused  GrantState = "paused"
	GrantRevoked GrantState = "revoked"
	GrantExpired GrantState = "expired"
	// GrantUsed: all of its uses were made.
	GrantUsed GrantState = "used"
	// GrantEnded: its session has ended.
	GrantEnded GrantState = "ended"
)

// Subject is what of a call a grant can be about, beside its tool.
type Subject struct {
	// Folder is what relative paths are relative to; "" if there is none.
	Folder string `json:"folder,omitempty"`
	// Paths are those that the arguments name, absolute and clean: as written, and as
	// they lead through symbolic links.
	Paths []string `json:"paths,omitempty"`
	// Commands are the shell commands that have to be covered.
	Commands []Command `json:"commands,omitempty"`
}

// Command is a shell command of a [Subject].
type Command struct {
	// Words and Least are those of [command.Segment].
	Words []string `json:"words"`
	Least int      `json:"least"`
}

// allWithin reports whether there are paths, and all of them are folder or below it.
func allWithin(paths []string, folder string) bool {
	return len(paths) > 0 && !slices.ContainsFunc(paths, func(name string) bool { return !policy.Within(name, folder) })
}

// describe says what the grant covers.
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
