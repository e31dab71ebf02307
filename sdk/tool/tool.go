// Package tool defines the types that host and plugins share: tools, calls,
// results and errors. It contains data types and their text forms, and imports
// only the standard library.
package tool

import (
	"encoding/json"
	"strings"
	"time"
)

// Spec describes one tool. Name, Description and InputSchema are required.
type Spec struct {
	// Name identifies the tool in calls; see [ValidName].
	Name string `json:"name"`
	// Aliases are other names of the tool.
	Aliases []string `json:"aliases,omitempty"`
	// Title is the name that people see. The default is Name.
	Title string `json:"title,omitempty"`
	// Category groups tools in lists.
	Category string `json:"category,omitempty"`
	// Description is written for a model: what the tool does, when to use it,
	// and what it returns.
	Description string `json:"description"`
	// Core means that a client should always show the tool to the model.
	Core bool `json:"core,omitempty"`
	// SearchHint has words that a search for the tool finds, besides those of Name
	// and Description.
	SearchHint string `json:"search_hint,omitempty"`
	// Unavailable says why the tool cannot work with the plugin's settings, and what
	// the administrator changes, in one line that completes "not available: ". The
	// host does not list such a tool, and answers its calls with this. "" means that
	// the tool works.
	Unavailable string `json:"unavailable,omitempty"`
	// Foreign means that another program or server defines the tool, and the plugin
	// passes its calls on. The host offers it once an administrator has accepted this
	// definition.
	Foreign bool `json:"foreign,omitempty"`
	// Tier is the harm that a call can do, as the plugin claims. The host decides.
	Tier Tier `json:"tier"`
	// TierWhen gives calls with certain arguments another tier. The first rule
	// that applies counts.
	TierWhen []TierRule `json:"tier_when,omitempty"`
	// Idempotent means that repeating a call has no further effect.
	Idempotent bool `json:"idempotent,omitempty"`
	// Cacheable means that the host may reuse a result for a short time.
	Cacheable bool `json:"cacheable,omitempty"`
	// OpenWorld means that the tool contacts other machines.
	OpenWorld bool `json:"open_world,omitempty"`
	// Destructive means that a change may destroy data.
	Destructive bool `json:"destructive,omitempty"`
	// Asks means that the author wants a person to approve each call.
	Asks bool `json:"asks,omitempty"`
	// HasPreview means that the plugin can show what a call would do.
	HasPreview bool `json:"has_preview,omitempty"`
	// CommandTree means that the tool executes [Call.CommandTree] instead of its
	// argument of [RoleCommand] if the tree is set, as the plugin claims.
	CommandTree bool `json:"command_tree,omitempty"`
	// MaxOutput is the maximum size of a result; 0 means the host's default.
	MaxOutput ByteSize `json:"max_output,omitempty"`
	// Timeout is the time for one call; 0 means the host's default.
	Timeout time.Duration `json:"timeout,omitempty"`
	// MaxConcurrency is the maximum number of calls at the same time; 0 means no
	// limit.
	MaxConcurrency int `json:"max_concurrency,omitempty"`
	// InputSchema is the JSON Schema 2020-12 of the arguments, an object.
	InputSchema json.RawMessage `json:"input_schema"`
	// OutputSchema is the JSON Schema of [Result.Structured]; nil means none.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
}

// TierRule gives calls with a certain argument another tier.
type TierRule struct {
	// Property is the name of a top-level argument.
	Property string `json:"property"`
	// Equals is the JSON value that the argument must have; nil means any value.
	Equals json.RawMessage `json:"equals,omitempty"`
	// Tier is the tier of a call that the rule applies to.
	Tier Tier `json:"tier"`
}

// ValidName reports whether name is valid for a tool, by the rule of the plugin contract: a
// lower-case letter, then up to 63 lower-case letters, digits and underscores. Every model API
// accepts such names for functions.
func ValidName(name string) bool { return validName(name, lowerCase, "_") }

// ValidAlias reports whether name is valid as another name of a tool, such as WebFetch: like
// [ValidName], and capitals are allowed.
func ValidAlias(name string) bool {
	return validName(name, lowerCase+"ABCDEFGHIJKLMNOPQRSTUVWXYZ", "_")
}

// ValidPluginName reports whether name is valid for a plugin: like [ValidName],
// and hyphens are allowed after the first letter.
func ValidPluginName(name string) bool { return validName(name, lowerCase, "_-") }

const (
	lowerCase = "abcdefghijklmnopqrstuvwxyz"
	maxName   = 64
)

// validName reports whether a name begins with one of the letters, and has at most 63 letters,
// digits and other characters after it.
func validName(name, letters, others string) bool {
	return name != "" && len(name) <= maxName && strings.Contains(letters, name[:1]) && strings.Trim(name, letters+"0123456789"+others) == ""
}
