package catalog

import (
	"time"

	"github.com/toolhost/toolhost/host/internal/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Defaults for what neither the plugin nor the admin says.
const (
	DefaultTimeout   = 60 * time.Second
	DefaultMaxOutput = 16 * tool.KiB
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
	offered tool.Tier // by the host
}

// ReadOnly reports whether no call of the tool changes anything.
func (e *Entry) ReadOnly() bool { return e.highest() == tool.ReadOnly }

// highest is the highest tier that a call may have and still be run.
func (e *Entry) highest() tool.Tier {
	return min(max(e.Tier, e.tiers.highest()), e.ceiling, e.offered)
}
