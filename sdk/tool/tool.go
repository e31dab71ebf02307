// Package tool is the vocabulary that host and plugins share: what a tool is,
// what a call and its result look like, how a failure is told. It holds data
// and its text forms only, imports the standard library only, and does nothing.
package tool

import (
	"encoding/json"
	"regexp"
	"time"
)

// Spec describes one tool. Name, Description and InputSchema are required.
type Spec struct {
	// Name is how a call names the tool; see [ValidName].
	Name string `json:"name"`
	// Aliases are other names that resolve to it.
	Aliases []string `json:"aliases,omitempty"`
	// Title is for people; the default is the name.
	Title string `json:"title,omitempty"`
	// Category groups tools in lists.
	Category string `json:"category,omitempty"`
	// Description is written for a model: what it does, when to use it, what
	// it returns, its limits.
	Description string `json:"description"`
	// Tier is the harm that a call can do. It is a claim: the host decides.
	Tier Tier `json:"tier"`
	// TierWhen gives single calls another tier; the first rule that holds
	// counts.
	TierWhen []TierRule `json:"tier_when,omitempty"`
	// Idempotent says that a call may be repeated with the same outcome.
	Idempotent bool `json:"idempotent,omitempty"`
	// Cacheable says that a result may be given again for a short time.
	Cacheable bool `json:"cacheable,omitempty"`
	// OpenWorld says that the tool reaches beyond the machine.
	OpenWorld bool `json:"open_world,omitempty"`
	// Destructive says that the tool may destroy what it changes.
	Destructive bool `json:"destructive,omitempty"`
	// Asks says that the author wants a person to be asked.
	Asks bool `json:"asks,omitempty"`
	// HasPreview says that the plugin can tell what a call would do.
	HasPreview bool `json:"has_preview,omitempty"`
	// CommandTree says that the tool executes its argument of [RoleCommand] by
	// [Call.CommandTree], if that is set. It is a claim.
	CommandTree bool `json:"command_tree,omitempty"`
	// MaxOutput is the output that fits; 0 means the host's default.
	MaxOutput ByteSize `json:"max_output,omitempty"`
	// Timeout bounds one attempt; 0 means the host's default.
	Timeout time.Duration `json:"timeout,omitempty"`
	// MaxConcurrency bounds calls at the same time; 0 means no bound.
	MaxConcurrency int `json:"max_concurrency,omitempty"`
	// InputSchema is the JSON Schema 2020-12 of the arguments, an object.
	InputSchema json.RawMessage `json:"input_schema"`
	// OutputSchema is the JSON Schema of [Result.Structured]; nil means none.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
}

// TierRule gives a call another tier by its arguments.
type TierRule struct {
	// Property is the name of a top-level argument.
	Property string `json:"property"`
	// Equals is the JSON value that it must have; nil means that it need only
	// be present.
	Equals json.RawMessage `json:"equals,omitempty"`
	// Tier is what the call gets if the rule holds.
	Tier Tier `json:"tier"`
}

// namePattern is the rule for tool names of the plugin contract. It fits what
// every model API accepts as a function name.
var namePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// ValidName reports whether name can be a tool's: a lower-case letter, then up
// to 63 lower-case letters, digits and underscores.
func ValidName(name string) bool { return namePattern.MatchString(name) }

// pluginNamePattern is the rule for names of plugins.
var pluginNamePattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// ValidPluginName reports whether name can be a plugin's: as a tool's, and
// hyphens.
func ValidPluginName(name string) bool { return pluginNamePattern.MatchString(name) }
