package catalog

import (
	"reflect"
	"time"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Defaults where neither the plugin nor the configuration sets a value.
const (
	DefaultTimeout   = 60 * time.Second
	DefaultMaxOutput = 40 * tool.KiB
	// DefaultCacheTTL is for tools whose plugin allows caching.
	DefaultCacheTTL = time.Minute
)

// Limits of a plugin's own values. The configuration may exceed them.
const (
	maxTimeout   = 10 * time.Minute
	maxMaxOutput = 16 * tool.MiB
)

// Entry is one offered tool. It is immutable.
type Entry struct {
	// Plugin is the plugin that owns the tool.
	Plugin string
	// Digest is the digest of the program that published the tool.
	Digest string
	// Definition is the digest of its accepted definition; "" if the plugin is not locked.
	Definition string
	// Spec is the plugin's description, with a title.
	Spec tool.Spec
	// Tier is the tier of calls without a matching tier rule.
	Tier tool.Tier
	// Timeout limits one attempt.
	Timeout time.Duration
	// MaxOutput limits the part of the result that a caller gets.
	MaxOutput tool.ByteSize
	// Rate limits how often it is called; zero means no limit.
	Rate Rate
	// CacheTTL is how long a result may be reused for the same user; 0 means never.
	CacheTTL time.Duration
	// OwnProcesses reports that each user has processes of the plugin.
	OwnProcesses bool
	// SplitTiers reports that read_only calls run in a process that can change nothing.
	SplitTiers bool
	// Aliases are the other names, from the plugin and the configuration. An alias that is another
	// tool's name leads to that tool.
	Aliases []string
	// Schema checks the arguments.
	Schema *schema.Schema
	// Output checks the structured result, and holds its schema for clients. It is nil if the
	// tool has none; its methods work on nil.
	Output *schema.Output

	tiers   tiers
	ceiling tool.Tier // of the plugin
}

// OfHost reports whether the tool belongs to the host.
func (e *Entry) OfHost() bool { return e.Plugin == HostPlugin }

// Searches reports whether the tool is one of the host's that stand for tools that a list leaves
// out: find_tool or call_tool.
func (e *Entry) Searches() bool {
	return e.OfHost() && (e.Spec.Name == FindTool || e.Spec.Name == CallTool)
}

// ReadOnly reports whether no call of the tool changes anything.
func (e *Entry) ReadOnly() bool { return e.HighestTier() == tool.ReadOnly }

// Destructive reports whether clients should warn that a call may destroy something.
func (e *Entry) Destructive() bool {
	return !e.ReadOnly() && (e.Spec.Destructive || e.Tier == tool.Privileged)
}

// Idempotent reports whether repeating a call has no further effect.
func (e *Entry) Idempotent() bool { return e.ReadOnly() || e.Spec.Idempotent }

// HighestTier is the highest tier of calls that may run.
func (e *Entry) HighestTier() tool.Tier {
	return min(max(e.Tier, e.tiers.highest()), e.ceiling)
}

// RunsCommands reports whether the tool takes commands, so that the end of its output matters as
// much as the beginning.
func (e *Entry) RunsCommands() bool {
	return e.Schema.HasRole(tool.RoleCommand, tool.RoleScript, tool.RoleArgv)
}

// NamesFiles reports whether the arguments can name files, in commands too.
func (e *Entry) NamesFiles() bool {
	return e.RunsCommands() || e.Schema.HasRole(tool.RolePath, tool.RolePatch, tool.RoleRepository)
}

// ValuesOf returns every text in the arguments of a call that has a role, at
// any depth; see [schema.Schema.ValuesOf].
func (e *Entry) ValuesOf(role tool.Role, arguments map[string]any) []string {
	return e.Schema.ValuesOf(role, arguments)
}

// HasRole reports whether the tool has an argument with a role.
func (e *Entry) HasRole(role tool.Role) bool { return e.Schema.HasRole(role) }

// ListsOf returns the texts of every value with a role, value by value; see
// [schema.Schema.ListsOf].
func (e *Entry) ListsOf(role tool.Role, arguments map[string]any) [][]string {
	return e.Schema.ListsOf(role, arguments)
}

// Hidden returns the arguments of a call as they may be shown and recorded, with "(hidden)" for
// each secret, and true. Without secrets it returns the arguments themselves and false.
func (e *Entry) Hidden(arguments map[string]any) (map[string]any, bool) {
	return e.Schema.Hidden(arguments)
}

// offersSame reports whether two entries offer the same tool in the same way,
// by whichever program.
func (e *Entry) offersSame(other *Entry) bool {
	return e == other || e.Schema.Same(other.Schema) && e.Output.Same(other.Output) && reflect.DeepEqual(e.plain(), other.plain())
}

// plain is an entry without its program and its compiled JSON: the same JSON may be spelled in
// several ways.
func (e *Entry) plain() Entry {
	plain := *e
	plain.Digest, plain.Schema, plain.Output = "", nil, nil
	plain.Spec.InputSchema, plain.Spec.OutputSchema, plain.Spec.TierWhen = nil, nil, nil
	return plain
}

// HostPlugin is the plugin name of the host's own tools. No plugin has this name.
const HostPlugin = "toolhost"

// The host's own tools that messages name.
const (
	ResultRead = "result_read"
	CallWait   = "call_wait"
	FindTool   = "find_tool"
	CallTool   = "call_tool"
)

// Plugin configures the tools of one plugin.
type Plugin struct {
	// Name is the name of its block in the configuration.
	Name string
	// Ceiling is the highest tier of its tools; a tool above it is refused.
	Ceiling tool.Tier
	// TrustClaims accepts the plugin's claims about tiers. Without it, a tool that the
	// configuration does not list has the ceiling as its tier.
	TrustClaims bool
	// SplitTiers says that read_only calls run in a process that can change nothing. The claim that
	// calls are read_only is then accepted without TrustClaims; other claims are not.
	SplitTiers bool
	// OwnProcesses says that each user has processes of the plugin.
	OwnProcesses bool
	// Tools configure single tools.
	Tools []ToolOptions
	// Reserved are the last known names of its tools. Until they are known again, no later plugin
	// gets these names.
	Reserved []string
}

// ToolOptions configure one tool. Zero values keep the plugin's value or the default.
type ToolOptions struct {
	Name string
	// Place is where the configuration has its block, e.g. "config.hcl:12".
	Place     string
	Tier      tool.Tier
	Disabled  bool
	Timeout   time.Duration
	MaxOutput tool.ByteSize
	Rate      Rate
	// CacheTTL is how long a result may be reused, if the plugin allows caching;
	// negative means never.
	CacheTTL time.Duration
	Aliases  []string
}

// Rate limits how often a tool is called. The zero Rate is no limit.
type Rate struct {
	// At most Calls begin within Per. Both are positive, or both zero.
	Calls int
	Per   time.Duration
}
