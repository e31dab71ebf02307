package config

import (
	"github.com/hashicorp/hcl/v2"
)

// The shape of config.hcl. An argument is an attribute rather than a value, so
// that its place is known when its value turns out wrong; nil means that it is
// not there.

type rootBlock struct {
	Workspace *hcl.Attribute `hcl:"workspace"`
	PluginDir *hcl.Attribute `hcl:"plugin_dir"`
	StateDir  *hcl.Attribute `hcl:"state_dir"`

	Locals    []localsBlock  `hcl:"locals,block"`
	Auth      *authBlock     `hcl:"auth,block"`
	Sandboxes []sandboxBlock `hcl:"sandbox,block"`
	Plugins   []pluginBlock  `hcl:"plugin,block"`
}

type localsBlock struct {
	Arguments hcl.Attributes `hcl:",remain"`
}

type authBlock struct {
	LocalUser *hcl.Attribute `hcl:"local_user"`
}

// sandboxBlock is a sandbox that plugins name.
type sandboxBlock struct {
	Name      string    `hcl:"name,label"`
	NameRange hcl.Range `hcl:"name,label_range"`

	Limits *limitsBlock `hcl:"limits,block"`
	Env    *envBlock    `hcl:"env,block"`
}

// inlineSandboxBlock is the sandbox of one plugin.
type inlineSandboxBlock struct {
	Range hcl.Range `hcl:",def_range"`

	Limits *limitsBlock `hcl:"limits,block"`
	Env    *envBlock    `hcl:"env,block"`
}

type limitsBlock struct {
	Memory       *hcl.Attribute `hcl:"memory"`
	OpenFiles    *hcl.Attribute `hcl:"open_files"`
	Processes    *hcl.Attribute `hcl:"processes"`
	FileSize     *hcl.Attribute `hcl:"file_size"`
	Stack        *hcl.Attribute `hcl:"stack"`
	Core         *hcl.Attribute `hcl:"core"`
	CPUTime      *hcl.Attribute `hcl:"cpu_time"`
	AddressSpace *hcl.Attribute `hcl:"address_space"`
}

type envBlock struct {
	Pass *hcl.Attribute `hcl:"pass"`
}

type pluginBlock struct {
	Name      string    `hcl:"name,label"`
	NameRange hcl.Range `hcl:"name,label_range"`
	Range     hcl.Range `hcl:",def_range"`

	Path        *hcl.Attribute      `hcl:"path"`
	Enabled     *hcl.Attribute      `hcl:"enabled"`
	SHA256      *hcl.Attribute      `hcl:"sha256"`
	Tier        *hcl.Attribute      `hcl:"tier"`
	Claims      *hcl.Attribute      `hcl:"claims"`
	SandboxName *hcl.Attribute      `hcl:"sandbox"`
	Sandbox     *inlineSandboxBlock `hcl:"sandbox,block"`
	Start       *hcl.Attribute      `hcl:"start"`
	IdleTimeout *hcl.Attribute      `hcl:"idle_timeout"`
	Config      *configBlock        `hcl:"config,block"`
	Tools       []toolBlock         `hcl:"tool,block"`
}

// configBlock holds a plugin's own settings, which only the plugin knows.
type configBlock struct {
	Range hcl.Range `hcl:",def_range"`
	Body  hcl.Body  `hcl:",remain"`
}

type toolBlock struct {
	Name      string    `hcl:"name,label"`
	NameRange hcl.Range `hcl:"name,label_range"`

	Tier      *hcl.Attribute `hcl:"tier"`
	Timeout   *hcl.Attribute `hcl:"timeout"`
	MaxOutput *hcl.Attribute `hcl:"max_output"`
	Aliases   *hcl.Attribute `hcl:"aliases"`
	Enabled   *hcl.Attribute `hcl:"enabled"`
}

// laterNames are arguments and blocks that a later version will have, by the
// block that holds them ("" is the file). Whoever writes one is told so
// instead of that it is unknown.
func laterNames(block string) []string {
	switch block {
	case "":
		return []string{"server", "secret", "policy", "approvals", "results", "journal", "toolset", "telemetry"}
	case "auth":
		return []string{"token", "oidc"}
	case "sandbox":
		return []string{"isolation", "require", "on_missing", "run_as", "filesystem", "network"}
	case "limits":
		return []string{"tmp_size"}
	case "plugin":
		return []string{"isolation_scope", "secrets", "approval"}
	case "tool":
		return []string{"approval", "allow_standing", "cache_ttl", "rate"}
	}
	return nil
}
