package config

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/auth/oidc"
	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/plugin/workspace"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// decoder decodes one source into a [Config] and collects the mistakes.
type decoder struct {
	src      *source
	opts     LoadOptions
	files    map[string]*hcl.File // by name
	ctx      *hcl.EvalContext     // functions, and local once known
	mistakes hcl.Diagnostics
	warnings []warning
	accepted []Accepted
	secrets  *secrets
	read     []string  // files that file() and registry() read
	asked    []string  // programs that registry() ran
	printers []Command // that print secrets
	notified []string  // the programs of notify blocks
	paths    []sandboxPath
	host     account
	users    []string // the users of all tokens and the local user
	logins   []oidc.Issuer
	program  string // of this host; "" if it does not matter
	sets     []auth.Toolset
	dirs     workspace.Dirs // in which callers work
	groups   auth.Groups

	toolNames []ToolName
	// sandboxesUsed are the names of sandboxes that plugins have.
	sandboxesUsed []string
	secretsUsed   []string // the names of secrets that plugins may request, or the proxy injects
	secretSources map[string]secretSource
	// pluginNames are the names of all plugins and of the host, as conditions know them; none if
	// there is no plugin block.
	pluginNames []string
	localNames  []string // of all locals blocks, sorted
}

func newDecoder(src *source, opts LoadOptions) *decoder {
	d := &decoder{
		src:     src,
		opts:    opts,
		files:   make(map[string]*hcl.File),
		secrets: &secrets{},
		host:    account{uid: os.Geteuid(), gid: os.Getegid()},
	}
	d.ctx = &hcl.EvalContext{
		Functions: d.functions(),
		Variables: map[string]cty.Value{"local": cty.EmptyObjectVal},
	}
	return d
}

// error returns an error with the mistakes so far, or nil.
func (d *decoder) error() error { return newError(d.mistakes, d.files, d.secrets) }

// unique records the name of a block. It reports a name that an earlier block of the kind
// has, and returns false.
func (d *decoder) unique(kind, name string, at hcl.Range, firsts map[string]hcl.Range) bool {
	if first, taken := firsts[name]; taken {
		d.mistake(at, "Duplicate "+kind, "Another %s %q is at %s. Give each %s its own name.", kind, name, diag.Place(first), kind)
		return false
	}
	firsts[name] = at
	return true
}

// validName reports a name that a plugin or a sandbox cannot have.
func (d *decoder) validName(kind, name string, at hcl.Range) {
	if !tool.ValidPluginName(name) {
		d.mistake(at, "Invalid "+kind+" name",
			"%q cannot be a %s's name: expected a lower-case letter, then at most 63 lower-case letters, digits, _ and -.", name, kind)
	}
}

// mistake records a mistake at a place.
func (d *decoder) mistake(at hcl.Range, summary, format string, args ...any) {
	d.mistakes = append(d.mistakes, diag.Mistake(at, summary, format, args...))
}

// decode reads the whole configuration. The result is complete only if no mistake
// was recorded.
func (d *decoder) decode(bodies []*hclsyntax.Body) *Config {
	root := d.blocks(bodies)
	cfg := d.directories(root)
	d.server(root.Server, cfg)
	d.sets = d.toolsets(root.Toolsets)
	cfg.Toolsets = d.sets
	d.logins = d.issuers(root.Auth)
	cfg.Issuers = d.logins
	cfg.LocalUser, cfg.Tokens = d.auth(root.Auth)
	cfg.Results = d.results(root.Results)
	d.groups = d.readGroups(root.Groups, cfg.Results)
	cfg.Groups = d.groups
	if len(root.Plugins) > 0 {
		d.pluginNames = []string{catalog.HostPlugin}
	}
	for _, block := range root.Plugins {
		d.pluginNames = append(d.pluginNames, block.Name)
	}
	cfg.Policy, cfg.ActionsPerHour = d.policy(root.Policy, cfg.Workspace.Top())
	cfg.Approvals = d.approvals(root.Approvals, root.Server)
	cfg.Clients = d.clients(root.Clients)
	cfg.Journal = d.journal(root.Journal)
	granted := d.grantable(root.Secrets)
	d.secretSources = granted
	cfg.Notifiers = d.notifiers(root.Notify)
	sandboxes := d.sandboxes(root.Sandboxes)
	firsts := make(map[string]hcl.Range)
	plugins := make(map[string]policy.Plugin)
	var unchecked []*settings // of each plugin
	for _, block := range root.Plugins {
		d.unique("plugin", block.Name, block.NameRange, firsts)
		d.validName("plugin", block.Name, block.NameRange)
		if block.Name == catalog.HostPlugin {
			d.mistake(block.NameRange, "Reserved plugin name",
				"The host lists its own tools under %q. Give the plugin another name.", block.Name)
		}
		p, own := d.plugin(block, sandboxes, cfg.PluginDir)
		p.Supervisor.Secrets, p.Supervisor.UserSecrets = d.granted(block.Secrets, granted)
		if p.Enabled && !p.Catalog.OwnProcesses && len(p.Supervisor.UserSecrets) > 0 {
			d.warnShared(block, p.Supervisor.UserSecrets)
		}
		unchecked = append(unchecked, own)
		levels := d.levels(block, p.Catalog.Ceiling)
		levels.Builds = d.builds(block, &p.Supervisor.Confinement, cfg.Policy.Commands)
		if len(levels.Tiers)+len(levels.Tools) > 0 || levels.Builds.Verdict != 0 {
			plugins[block.Name] = levels
		}
		cfg.Plugins = append(cfg.Plugins, p)
	}
	if len(plugins) > 0 {
		cfg.Policy.Plugins = plugins
	}
	cfg.InstancesMemory = d.instancesMemory(root.InstancesMemory, cfg.Plugins)
	d.checkWidth(root.Workspace, cfg)
	d.warnUnused(root)
	d.checkReach(cfg, root.Workspace, root.PluginDir)
	paths := d.hostPaths(cfg)
	d.checkPaths(paths)
	for i, own := range unchecked {
		if p := cfg.Plugins[i].Supervisor; own != nil && paths.apartFrom(p.Confinement) {
			d.checkSettings(cfg.StateDir, p, own)
		}
	}
	return cfg
}

// directories decodes the directories of the host.
func (d *decoder) directories(root rootBlock) *Config {
	d.locals(root.Locals)
	cfg := &Config{
		Workspace: d.workspace(root.Workspace, root.Template),
		PluginDir: d.pluginDir(root.PluginDir),
	}
	d.dirs = cfg.Workspace
	cfg.StateDir, cfg.StateNamed = d.stateDir(root.StateDir, root.Workspace, cfg.Workspace.Top())
	d.checkTemplate(root.Template, cfg)
	cfg.WorkspaceQuota = d.workspaceQuota(root.Quota)
	return cfg
}

// blocks decodes the files into blocks.
func (d *decoder) blocks(bodies []*hclsyntax.Body) rootBlock {
	d.once("", bodies...)
	merged := make([]hcl.Body, len(bodies))
	for i, b := range bodies {
		merged[i] = b
	}
	var root rootBlock
	d.decodeBody(hcl.MergeBodies(merged), &root)
	return root
}

// decodeBody decodes the inside of a block, or of the files.
func (d *decoder) decodeBody(body hcl.Body, into any) {
	for _, found := range gohcl.DecodeBody(body, d.ctx, into) {
		explainLabel(found)
		d.explainName(found)
		d.mistakes = append(d.mistakes, found)
	}
}

// explainLabel rewrites the diagnostic for a block without a name, or with several.
func explainLabel(found *hcl.Diagnostic) {
	if _, block, ok := strings.Cut(found.Summary, "Missing name for "); ok {
		found.Detail = fmt.Sprintf("A %s block needs a name. Write it in quotes: %s \"name\" {", block, block)
	}
	if _, block, ok := strings.Cut(found.Summary, "Extraneous label for "); ok && strings.HasPrefix(found.Detail, "Only 1 ") {
		found.Detail = fmt.Sprintf("A %s block has one name. Remove this one.", block)
	}
}

// explainName rewrites the diagnostic for an unknown name that an earlier version had
// or a later version will have.
func (d *decoder) explainName(found *hcl.Diagnostic) {
	if found.Subject == nil {
		return
	}
	file := d.files[found.Subject.Filename]
	name := string(found.Subject.SliceBytes(file.Bytes))
	around := file.BlocksAtPos(found.Subject.Start)
	if n := len(around); n > 0 && around[n-1].TypeRange == *found.Subject {
		around = around[:n-1] // the unknown block itself
	}
	parent := ""
	if n := len(around); n > 0 {
		parent = around[n-1].Type
	}
	switch {
	case parent == "approvals" && name == "elicitation_from":
		found.Summary = "Elicitation needs a token"
		found.Detail = "Any program can claim any name, so a name gives no rights. Remove elicitation_from, and write elicitation = true in the block of the client's own token. toolhost token new NAME --elicitation prints such a block."
	case slices.Contains(laterNames(parent), name):
		found.Summary = "Not available yet"
		found.Detail = fmt.Sprintf("This version does not support %q yet, so nothing would enforce it. Remove it.", name)
	case strings.HasPrefix(found.Summary, "Unsupported ") && !strings.Contains(found.Detail, "Did you mean"):
		found.Detail += belongs(name)
	}
}

// once reports blocks that occur twice where they may occur once. The bodies are
// those of one block, of all blocks that are read as one, or of all files if block
// is "".
func (d *decoder) once(block string, bodies ...*hclsyntax.Body) {
	single := onceBlocks(block)
	if len(single) == 0 {
		return
	}
	firsts := make(map[string]hcl.Range)
	var policies []*hclsyntax.Body
	for _, body := range bodies {
		for _, inner := range body.Blocks {
			if block == "" && inner.Type == "policy" {
				policies = append(policies, inner.Body)
				continue
			}
			d.once(inner.Type, inner.Body)
			if !slices.Contains(single, inner.Type) {
				continue
			}
			if first, taken := firsts[inner.Type]; taken {
				d.mistake(inner.DefRange(), "Duplicate block", "Another %s block is at %s. Put everything into one.", inner.Type, diag.Place(first))
				continue
			}
			firsts[inner.Type] = inner.DefRange()
		}
	}
	if len(policies) > 0 {
		d.once("policy", policies...)
		d.onceArguments("policy", policies)
	}
}

// onceArguments reports arguments that occur in two of the blocks that are read as
// one. Twice in one block is a syntax error.
func (d *decoder) onceArguments(block string, bodies []*hclsyntax.Body) {
	firsts := make(map[string]hcl.Range)
	for _, body := range bodies {
		for name, argument := range body.Attributes {
			if first, taken := firsts[name]; taken {
				d.mistake(argument.NameRange, "Duplicate argument",
					"%s is also set at %s. All %s blocks are read as one, so set it in one of them only.", name, diag.Place(first), block)
				continue
			}
			firsts[name] = argument.NameRange
		}
	}
}
