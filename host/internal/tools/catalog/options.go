package catalog

import (
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

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
