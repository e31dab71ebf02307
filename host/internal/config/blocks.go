package config

import (
	"github.com/hashicorp/hcl/v2"
)

// These types are the shape of config.hcl. Arguments are attributes rather than
// values, so that mistakes in their values have a place; an absent argument is nil.
// Blocks that may occur once are lists too, so that mistakes in a second one are
// reported as well (see [decoder.once]).

type rootBlock struct {
	Workspace *hcl.Attribute `hcl:"workspace"`
	Template  *hcl.Attribute `hcl:"workspace_template"`
	Quota     *hcl.Attribute `hcl:"workspace_quota"`
	PluginDir *hcl.Attribute `hcl:"plugin_dir"`
	StateDir  *hcl.Attribute `hcl:"state_dir"`

	InstancesMemory *hcl.Attribute `hcl:"instances_memory"`

	Locals    []localsBlock    `hcl:"locals,block"`
	Server    []serverBlock    `hcl:"server,block"`
	Auth      []authBlock      `hcl:"auth,block"`
	Policy    []policyBlock    `hcl:"policy,block"`
	Approvals []approvalsBlock `hcl:"approvals,block"`
	Notify    []notifyBlock    `hcl:"notify,block"`
	Results   []resultsBlock   `hcl:"results,block"`
	Journal   []journalBlock   `hcl:"journal,block"`
	Secrets   []secretBlock    `hcl:"secret,block"`
	Sandboxes []sandboxBlock   `hcl:"sandbox,block"`
	Plugins   []pluginBlock    `hcl:"plugin,block"`
	Clients   []clientBlock    `hcl:"client,block"`
	Toolsets  []toolsetBlock   `hcl:"toolset,block"`
	Groups    []groupBlock     `hcl:"group,block"`
}

type localsBlock struct {
	Arguments hcl.Attributes `hcl:",remain"`
}

type serverBlock struct {
	Listen   *hcl.Attribute `hcl:"listen"`
	Grace    *hcl.Attribute `hcl:"grace"`
	Patience *hcl.Attribute `hcl:"patience"`

	Hosts           *hcl.Attribute `hcl:"hosts"`
	InsecureListen  *hcl.Attribute `hcl:"insecure_listen"`
	ToolSearchAbove *hcl.Attribute `hcl:"tool_search_above"`

	TLS []tlsBlock `hcl:"tls,block"`
}

// tlsBlock names the certificate of the server.
type tlsBlock struct {
	Range hcl.Range `hcl:",def_range"`

	Cert *hcl.Attribute `hcl:"cert"`
	Key  *hcl.Attribute `hcl:"key"`
}

type authBlock struct {
	LocalUser *hcl.Attribute `hcl:"local_user"`
	Tokens    []tokenBlock   `hcl:"token,block"`
	Issuers   []issuerBlock  `hcl:"issuer,block"`
}

// issuerBlock is an OpenID Connect issuer whose access tokens are valid.
type issuerBlock struct {
	Name      string    `hcl:"name,label"`
	NameRange hcl.Range `hcl:"name,label_range"`
	Range     hcl.Range `hcl:",def_range"`

	URL         *hcl.Attribute `hcl:"url"`
	Audience    *hcl.Attribute `hcl:"audience"`
	UserClaim   *hcl.Attribute `hcl:"user_claim"`
	GroupsClaim *hcl.Attribute `hcl:"groups_claim"`
	Roles       *hcl.Attribute `hcl:"roles"`
	Scopes      *hcl.Attribute `hcl:"scopes"`
}

type tokenBlock struct {
	Name      string    `hcl:"name,label"`
	NameRange hcl.Range `hcl:"name,label_range"`
	Range     hcl.Range `hcl:",def_range"`

	SHA256      *hcl.Attribute `hcl:"sha256"`
	User        *hcl.Attribute `hcl:"user"`
	Roles       *hcl.Attribute `hcl:"roles"`
	Approves    *hcl.Attribute `hcl:"approves"`
	Elicitation *hcl.Attribute `hcl:"elicitation"`
	Structured  *hcl.Attribute `hcl:"structured"`
	Toolset     *hcl.Attribute `hcl:"toolset"`
	Expires     *hcl.Attribute `hcl:"expires"`
	Account     *hcl.Attribute `hcl:"account"`
}

// policyBlock is a part of the policy. All of them are read as one, so that rules can
// be spread over files.
type policyBlock struct {
	Mode           *hcl.Attribute `hcl:"mode"`
	ActionsPerHour *hcl.Attribute `hcl:"actions_per_hour"`

	Commands []commandsBlock `hcl:"commands,block"`
	Paths    []pathsBlock    `hcl:"paths,block"`
	URLs     []urlsBlock     `hcl:"urls,block"`
	Rules    []ruleBlock     `hcl:"rule,block"`
}

// ruleBlock is a rule of the administrator.
type ruleBlock struct {
	Name      string    `hcl:"name,label"`
	NameRange hcl.Range `hcl:"name,label_range"`
	Range     hcl.Range `hcl:",def_range"`

	Tools     *hcl.Attribute `hcl:"tools"`
	When      *hcl.Attribute `hcl:"when"`
	Verdict   *hcl.Attribute `hcl:"verdict"`
	Reason    *hcl.Attribute `hcl:"reason"`
	Locked    *hcl.Attribute `hcl:"locked"`
	Approvers *hcl.Attribute `hcl:"approvers"`
	Shadow    *hcl.Attribute `hcl:"shadow"`
	Tests     []testBlock    `hcl:"test,block"`
}

// testBlock is a call and the verdict that the policy must give it.
type testBlock struct {
	Name      string    `hcl:"name,label"`
	NameRange hcl.Range `hcl:"name,label_range"`

	Tool   *hcl.Attribute `hcl:"tool"`
	Args   *hcl.Attribute `hcl:"args"`
	User   *hcl.Attribute `hcl:"user"`
	Expect *hcl.Attribute `hcl:"expect"`
}

// commandsBlock is the policy for arguments that are shell commands.
type commandsBlock struct {
	Range hcl.Range `hcl:",def_range"`

	Allow          *hcl.Attribute `hcl:"allow"`
	Deny           *hcl.Attribute `hcl:"deny"`
	Unlisted       *hcl.Attribute `hcl:"unlisted"`
	Text           *hcl.Attribute `hcl:"text"`
	Assign         *hcl.Attribute `hcl:"assign"`
	WriteRedirects *hcl.Attribute `hcl:"write_redirects"`
	BlockHighRisk  *hcl.Attribute `hcl:"block_high_risk"`
	Risk           []riskBlock    `hcl:"risk,block"`
}

// riskBlock holds a verdict for each risk of a command.
type riskBlock struct {
	Low    *hcl.Attribute `hcl:"low"`
	Medium *hcl.Attribute `hcl:"medium"`
	High   *hcl.Attribute `hcl:"high"`

	AllowStanding *hcl.Attribute `hcl:"allow_standing"`
}

// pathsBlock is the policy for arguments that are paths.
type pathsBlock struct {
	WorkspaceOnly *hcl.Attribute `hcl:"workspace_only"`
	Forbidden     *hcl.Attribute `hcl:"forbidden"`

	Sensitive        *hcl.Attribute `hcl:"sensitive"`
	SensitiveVerdict *hcl.Attribute `hcl:"sensitive_verdict"`
}

// urlsBlock is the policy for arguments that are addresses.
type urlsBlock struct {
	Range hcl.Range `hcl:",def_range"`

	AllowDomains *hcl.Attribute `hcl:"allow_domains"`
}

type approvalsBlock struct {
	Timeout  *hcl.Attribute `hcl:"timeout"`
	Patience *hcl.Attribute `hcl:"patience"` // the former name of server.patience
}

// notifyBlock is a way to tell people elsewhere that a call waits.
type notifyBlock struct {
	Name      string    `hcl:"name,label"`
	NameRange hcl.Range `hcl:"name,label_range"`
	Range     hcl.Range `hcl:",def_range"`

	Webhook *hcl.Attribute `hcl:"webhook"`
	Secret  *hcl.Attribute `hcl:"secret"`
	Command *hcl.Attribute `hcl:"command"`
	Users   *hcl.Attribute `hcl:"users"`
	Details *hcl.Attribute `hcl:"details"`
	Remind  *hcl.Attribute `hcl:"remind"`
	Decided *hcl.Attribute `hcl:"decided"`
}

// toolsetBlock is a selection of tools.
type toolsetBlock struct {
	Name      string    `hcl:"name,label"`
	NameRange hcl.Range `hcl:"name,label_range"`

	Tools *hcl.Attribute `hcl:"tools"`
}

type groupBlock struct {
	Name      string    `hcl:"name,label"`
	NameRange hcl.Range `hcl:"name,label_range"`

	Users           *hcl.Attribute `hcl:"users"`
	Toolset         *hcl.Attribute `hcl:"toolset"`
	ActionsPerHour  *hcl.Attribute `hcl:"actions_per_hour"`
	ConcurrentCalls *hcl.Attribute `hcl:"concurrent_calls"`
	Results         *hcl.Attribute `hcl:"results"`
	NetworkPerDay   *hcl.Attribute `hcl:"network_per_day"`
}

// clientBlock is how a client of MCP gets its results.
type clientBlock struct {
	Name      string    `hcl:"name,label"`
	NameRange hcl.Range `hcl:"name,label_range"`

	MaxOutput  *hcl.Attribute `hcl:"max_output"`
	Structured *hcl.Attribute `hcl:"structured"`

	ToolSearchAbove *hcl.Attribute `hcl:"tool_search_above"`
}

type resultsBlock struct {
	TTL   *hcl.Attribute `hcl:"ttl"`
	Quota *hcl.Attribute `hcl:"quota"`
}

type journalBlock struct {
	Keep    *hcl.Attribute `hcl:"keep"`
	MaxSize *hcl.Attribute `hcl:"max_size"`
}

// secretBlock is a value that plugins request by name.
type secretBlock struct {
	Name      string    `hcl:"name,label"`
	NameRange hcl.Range `hcl:"name,label_range"`
	Range     hcl.Range `hcl:",def_range"`

	Value *hcl.Attribute `hcl:"value"`
	Exec  *hcl.Attribute `hcl:"exec"`
	For   *hcl.Attribute `hcl:"for"`
}

// sandboxBlock is a named sandbox.
type sandboxBlock struct {
	Name      string    `hcl:"name,label"`
	NameRange hcl.Range `hcl:"name,label_range"`
	Inside    hcl.Body  `hcl:",remain"` // see [sandboxArguments]
}

// inlineSandboxBlock is the sandbox of one plugin.
type inlineSandboxBlock struct {
	Range  hcl.Range `hcl:",def_range"`
	Inside hcl.Body  `hcl:",remain"` // see [sandboxArguments]
}

// sandboxArguments are the inside of a sandbox block.
type sandboxArguments struct {
	Isolation  *hcl.Attribute    `hcl:"isolation"`
	Require    *hcl.Attribute    `hcl:"require"`
	OnMissing  *hcl.Attribute    `hcl:"on_missing"`
	RunAs      *hcl.Attribute    `hcl:"run_as"`
	Limits     []limitsBlock     `hcl:"limits,block"`
	Filesystem []filesystemBlock `hcl:"filesystem,block"`
	Network    []networkBlock    `hcl:"network,block"`
	Env        []envBlock        `hcl:"env,block"`
}

// attributes returns the arguments of the block and its inner blocks that other
// arguments can contradict. Absent ones are nil.
func (b sandboxArguments) attributes() []*hcl.Attribute {
	attributes := []*hcl.Attribute{b.Isolation, b.Require, b.RunAs}
	for _, filesystem := range b.Filesystem {
		attributes = append(attributes, filesystem.Workspace, filesystem.Exec)
	}
	for _, network := range b.Network {
		attributes = append(attributes, network.Mode)
	}
	return attributes
}

type limitsBlock struct {
	Memory       *hcl.Attribute `hcl:"memory"`
	OpenFiles    *hcl.Attribute `hcl:"open_files"`
	Processes    *hcl.Attribute `hcl:"processes"`
	FileSize     *hcl.Attribute `hcl:"file_size"`
	Stack        *hcl.Attribute `hcl:"stack"`
	Core         *hcl.Attribute `hcl:"core"`
	CPUTime      *hcl.Attribute `hcl:"cpu_time"`
	CPUs         *hcl.Attribute `hcl:"cpus"`
	AddressSpace *hcl.Attribute `hcl:"address_space"`
	TmpSize      *hcl.Attribute `hcl:"tmp_size"`
}

type filesystemBlock struct {
	Workspace *hcl.Attribute `hcl:"workspace"`
	Read      *hcl.Attribute `hcl:"read"`
	Write     *hcl.Attribute `hcl:"write"`
	Exec      *hcl.Attribute `hcl:"exec"`
	Protect   *hcl.Attribute `hcl:"protect"`
}

type networkBlock struct {
	Mode     *hcl.Attribute `hcl:"mode"`
	Allow    *hcl.Attribute `hcl:"allow"`
	Deny     *hcl.Attribute `hcl:"deny"`
	Ask      *hcl.Attribute `hcl:"ask"`
	Private  *hcl.Attribute `hcl:"private"`
	MaxBytes *hcl.Attribute `hcl:"max_bytes"`
	Inject   []injectBlock  `hcl:"inject,block"`
}

type injectBlock struct {
	Host      string         `hcl:"host,label"`
	HostRange hcl.Range      `hcl:"host,label_range"`
	Range     hcl.Range      `hcl:",def_range"`
	Header    *hcl.Attribute `hcl:"header"`
	Prefix    *hcl.Attribute `hcl:"prefix"`
	Secret    *hcl.Attribute `hcl:"secret"`
}

type envBlock struct {
	Pass *hcl.Attribute `hcl:"pass"`
}

type pluginBlock struct {
	Name      string    `hcl:"name,label"`
	NameRange hcl.Range `hcl:"name,label_range"`
	Range     hcl.Range `hcl:",def_range"`

	Path           *hcl.Attribute       `hcl:"path"`
	Enabled        *hcl.Attribute       `hcl:"enabled"`
	SHA256         *hcl.Attribute       `hcl:"sha256"`
	Tier           *hcl.Attribute       `hcl:"tier"`
	Claims         *hcl.Attribute       `hcl:"claims"`
	SandboxName    *hcl.Attribute       `hcl:"sandbox"`
	Sandbox        []inlineSandboxBlock `hcl:"sandbox,block"`
	Start          *hcl.Attribute       `hcl:"start"`
	IdleTimeout    *hcl.Attribute       `hcl:"idle_timeout"`
	IsolationScope *hcl.Attribute       `hcl:"isolation_scope"`
	MaxInstances   *hcl.Attribute       `hcl:"max_instances"`
	MaxPerUser     *hcl.Attribute       `hcl:"max_per_user"`
	SplitTiers     *hcl.Attribute       `hcl:"split_tiers"`
	Restart        []restartBlock       `hcl:"restart,block"`
	Secrets        *hcl.Attribute       `hcl:"secrets"`
	Config         []configBlock        `hcl:"config,block"`
	Approval       []approvalBlock      `hcl:"approval,block"`
	Tools          []toolBlock          `hcl:"tool,block"`
}

// restartBlock bounds how often a crashing plugin restarts.
type restartBlock struct {
	MaxCrashes *hcl.Attribute `hcl:"max_crashes"`
	Within     *hcl.Attribute `hcl:"within"`
	Pause      *hcl.Attribute `hcl:"pause"`
	MaxPause   *hcl.Attribute `hcl:"max_pause"`
}

// approvalBlock holds a verdict for each tier of a plugin's calls.
type approvalBlock struct {
	ReadOnly      *hcl.Attribute `hcl:"read_only"`
	SideEffecting *hcl.Attribute `hcl:"side_effecting"`
	Privileged    *hcl.Attribute `hcl:"privileged"`
	Builds        *hcl.Attribute `hcl:"builds"`
	Approvers     *hcl.Attribute `hcl:"approvers"`
}

// configBlock holds the settings of a plugin, which the plugin defines.
type configBlock struct {
	Range hcl.Range `hcl:",def_range"`
	Body  hcl.Body  `hcl:",remain"`
}

type toolBlock struct {
	Name      string    `hcl:"name,label"`
	NameRange hcl.Range `hcl:"name,label_range"`

	Tier          *hcl.Attribute `hcl:"tier"`
	Approval      *hcl.Attribute `hcl:"approval"`
	AllowStanding *hcl.Attribute `hcl:"allow_standing"`
	Approvers     *hcl.Attribute `hcl:"approvers"`
	Timeout       *hcl.Attribute `hcl:"timeout"`
	MaxOutput     *hcl.Attribute `hcl:"max_output"`
	Rate          *hcl.Attribute `hcl:"rate"`
	CacheTTL      *hcl.Attribute `hcl:"cache_ttl"`
	Aliases       *hcl.Attribute `hcl:"aliases"`
	Enabled       *hcl.Attribute `hcl:"enabled"`
}

// onceBlocks returns the blocks that may occur once in a block. "" means all files
// together, "policy" all policy blocks together.
func onceBlocks(block string) []string {
	switch block {
	case "":
		return []string{"server", "auth", "approvals", "results", "journal"}
	case "server":
		return []string{"tls"}
	case "policy":
		return []string{"commands", "paths", "urls"}
	case "commands":
		return []string{"risk"}
	case "sandbox":
		return []string{"limits", "filesystem", "network", "env"}
	case "plugin":
		return []string{"sandbox", "restart", "config", "approval"}
	}
	return nil
}

// laterNames returns the arguments and blocks that a later version will have in a block ("" is
// the file). Their diagnostic says that, instead of "unknown".
func laterNames(block string) []string {
	switch block {
	case "":
		return []string{"telemetry"}
	}
	return nil
}
