package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// decode reads the whole configuration. The result is complete only if no mistake
// was recorded.
func (d *decoder) decode(bodies []*hclsyntax.Body) *Config {
	root := d.blocks(bodies)
	d.locals(root.Locals)

	cfg := &Config{
		Workspace: d.workspace(root.Workspace),
		PluginDir: d.pluginDir(root.PluginDir),
	}
	cfg.StateDir = d.stateDir(root.StateDir, root.Workspace, cfg.Workspace)
	cfg.Listen, cfg.Grace = d.server(root.Server)
	cfg.LocalUser, cfg.Tokens = d.auth(root.Auth)
	cfg.Policy, cfg.ActionsPerHour = d.policy(root.Policy, cfg.Workspace)
	cfg.Approvals = d.approvals(root.Approvals)
	cfg.Results = d.results(root.Results)
	cfg.Journal = d.journal(root.Journal)
	granted := d.grantable(root.Secrets)
	sandboxes := d.sandboxes(root.Sandboxes)
	firsts := make(map[string]hcl.Range)
	plugins := make(map[string]policy.Plugin)
	var unchecked []*settings // of each plugin
	for _, block := range root.Plugins {
		if first, taken := firsts[block.Name]; taken {
			d.mistake(block.NameRange, "Duplicate plugin",
				"Another plugin %q is at %s. Give each plugin its own name.", block.Name, diag.Place(first))
		} else {
			firsts[block.Name] = block.NameRange
		}
		if !tool.ValidPluginName(block.Name) {
			d.mistake(block.NameRange, "Invalid plugin name",
				"%q cannot be a plugin's name: expected a lower-case letter, then at most 63 lower-case letters, digits, _ and -.", block.Name)
		}
		if block.Name == catalog.HostPlugin {
			d.mistake(block.NameRange, "Reserved plugin name",
				"The host lists its own tools under %q. Give the plugin another name.", block.Name)
		}
		p, own := d.plugin(block, sandboxes, cfg.PluginDir)
		p.Supervisor.Secrets = d.granted(block.Secrets, granted)
		cfg.Plugins, unchecked = append(cfg.Plugins, p), append(unchecked, own)
		if levels := d.levels(block, p.Catalog.Ceiling); len(levels.Tiers)+len(levels.Tools) > 0 {
			plugins[block.Name] = levels
		}
	}
	if len(plugins) > 0 {
		cfg.Policy.Plugins = plugins
	}
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

// blocks decodes the files into blocks.
func (d *decoder) blocks(bodies []*hclsyntax.Body) rootBlock {
	d.once("", bodies...)
	merged := make([]hcl.Body, len(bodies))
	for i, b := range bodies {
		merged[i] = b
	}
	var root rootBlock
	for _, found := range gohcl.DecodeBody(hcl.MergeBodies(merged), d.ctx, &root) {
		explainLabel(found)
		d.explainName(found)
		d.mistakes = append(d.mistakes, found)
	}
	return root
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
	}
}
