package catalog

import (
	"reflect"
	"time"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Defaults for what neither the plugin nor the admin says.
const (
	DefaultTimeout   = 60 * time.Second
	DefaultMaxOutput = 40 * tool.KiB
	// DefaultCacheTTL is for tools whose plugin says that their results may be
	// kept.
	DefaultCacheTTL = time.Minute
)

// Bounds of what a plugin may ask for; an admin may go beyond.
const (
	maxTimeout   = 10 * time.Minute
	maxMaxOutput = 16 * tool.MiB
)

// Entry is one tool as it is offered. It never changes.
type Entry struct {
	// Plugin is the plugin that owns the tool.
	Plugin string
	// Digest is that of the program that published the tool.
	Digest string
	// Spec is what the plugin says, with a title.
	Spec tool.Spec
	// Tier is that of a call to which no rule of the tool gives another.
	Tier tool.Tier
	// Timeout bounds one attempt.
	Timeout time.Duration
	// MaxOutput bounds what a caller gets of the result.
	MaxOutput tool.ByteSize
	// Rate bounds how often it is called; zero if the admin says nothing.
	Rate Rate
	// CacheTTL is how long a result may be given again to the same user; 0
	// means not at all.
	CacheTTL time.Duration
	// Aliases are the other names, of the plugin and of the admin. One that
	// another tool has as its name leads there.
	Aliases []string
	// Schema checks the arguments.
	Schema *schema.Schema
	// Output checks the structured result, and has the schema of it for
	// clients. It is nil if the tool has none; its methods may be called all
	// the same.
	Output *schema.Output

	tiers   tiers
	ceiling tool.Tier // of the plugin
}

// OfHost reports whether the tool is one of the host's own.
func (e *Entry) OfHost() bool { return e.Plugin == HostPlugin }

// ReadOnly reports whether no call of the tool changes anything.
func (e *Entry) ReadOnly() bool { return e.HighestTier() == tool.ReadOnly }

// Destructive reports whether a call of the tool may destroy something, as far
// as clients should warn of it.
func (e *Entry) Destructive() bool {
	return !e.ReadOnly() && (e.Spec.Destructive || e.Tier == tool.Privileged)
}

// Idempotent reports whether a second equal call does no more than the first.
func (e *Entry) Idempotent() bool { return e.ReadOnly() || e.Spec.Idempotent }

// HighestTier is the highest tier that a call may have and still be run.
func (e *Entry) HighestTier() tool.Tier {
	return min(max(e.Tier, e.tiers.highest()), e.ceiling)
}

// RunsCommands reports whether the tool takes commands, so that the end of its output
// says as much as the beginning.
func (e *Entry) RunsCommands() bool {
	return e.Schema.HasRole(tool.RoleCommand, tool.RoleScript, tool.RoleArgv)
}

// ValuesOf returns every text in the arguments of a call that has a role, at
// any depth; see [schema.Schema.ValuesOf].
func (e *Entry) ValuesOf(role tool.Role, arguments map[string]any) []string {
	return e.Schema.ValuesOf(role, arguments)
}

// ListsOf returns the texts of every value with a role, value by value; see
// [schema.Schema.ListsOf].
func (e *Entry) ListsOf(role tool.Role, arguments map[string]any) [][]string {
	return e.Schema.ListsOf(role, arguments)
}

// Hidden returns the arguments of a call as they may be shown and recorded,
// with "(hidden)" for each secret, and true. If there is none, it returns the
// arguments themselves and false.
func (e *Entry) Hidden(arguments map[string]any) (map[string]any, bool) {
	return e.Schema.Hidden(arguments)
}

// offersSame reports whether two entries offer the same tool in the same way,
// by whichever program.
func (e *Entry) offersSame(other *Entry) bool {
	return e == other || e.Schema.Same(other.Schema) && e.Output.Same(other.Output) && reflect.DeepEqual(e.plain(), other.plain())
}

// plain is all of an entry but its program, and what its JSON was compiled to:
// the same JSON may be spelled in several ways.
func (e *Entry) plain() Entry {
	plain := *e
	plain.Digest, plain.Schema, plain.Output = "", nil, nil
	plain.Spec.InputSchema, plain.Spec.OutputSchema, plain.Spec.TierWhen = nil, nil, nil
	return plain
}

// HostPlugin is what the host's own tools are published under. No plugin has
// this name.
const HostPlugin = "toolhost"

// The host's own tools, which its texts name.
const (
	ResultRead   = "result_read"
	ApprovalWait = "approval_wait"
)

// Plugin says what the tools of one plugin may be.
type Plugin struct {
	// Name is the name of its block in the configuration.
	Name string
	// Ceiling is the highest tier that a tool of it may have; a tool above it
	// is refused.
	Ceiling tool.Tier
	// TrustClaims takes the plugin's word for the tier of its tools. Without
	// it, a tool that the admin has not listed has the ceiling as its tier.
	TrustClaims bool
	// Tools are what the admin says of single tools.
	Tools []ToolOptions
	// Reserved are the names that its tools had when they were last known. As long as they
	// are not known again, no plugin that stands after this one gets them.
	Reserved []string
}

// ToolOptions are what the admin says of one tool. Zero values leave the
// plugin's own word, or the default, in place.
type ToolOptions struct {
	Name      string
	Tier      tool.Tier
	Disabled  bool
	Timeout   time.Duration
	MaxOutput tool.ByteSize
	Rate      Rate
	// CacheTTL is how long a result may be given again, if the plugin says that
	// results of the tool may be kept at all; less than 0 means not.
	CacheTTL time.Duration
	Aliases  []string
}

// Rate bounds how often a tool is called. The zero Rate is no bound.
type Rate struct {
	// Calls may begin within Per; both are more than zero, or both zero.
	Calls int
	Per   time.Duration
}
