package config

import (
	"path/filepath"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/lazyregexp"
	"github.com/toolhost/toolhost/sdk/tool"
)

// plugin reads one plugin block. The settings are nil if the plugin cannot be started
// to check them.
func (d *decoder) plugin(block pluginBlock, sandboxes map[string]confinement, pluginDir string) (Plugin, *settings) {
	own := d.settings(block)
	before := len(d.mistakes)
	confined := d.pluginSandbox(block, sandboxes)
	p := Plugin{
		Supervisor: supervisor.Plugin{
			Name:        block.Name,
			Path:        d.pluginPath(block, pluginDir),
			SHA256:      d.sha256(block.SHA256),
			Limits:      confined.limits,
			Confinement: confined.access,
			Network:     confined.proxy(),
			PassEnv:     confined.passEnv,
			Restart:     d.restart(block.Restart),
			Settings:    own.evaluate,
			Locate:      own.locate,
		},
		Catalog: catalog.Plugin{
			Name: block.Name,
		},
		Enabled: d.flag(block.Enabled, true),
		Place:   diag.Place(block.Range),
	}
	// This is enough to ask the plugin for its settings, even if the rest of the block
	// has mistakes.
	startable := p.Enabled && !confined.wrong && len(d.mistakes) == before
	if start, ok := d.choice(block.Start, "on_demand", "eager"); ok {
		p.Supervisor.Eager = start == "eager"
	}
	if timeout, ok := d.duration(block.IdleTimeout, durationExample); ok {
		p.Supervisor.IdleTimeout = timeout
	}
	d.scope(&p.Supervisor, block, p.Enabled)
	d.checkUserSecrets(&confined, p.Supervisor)
	d.splitTiers(&p.Supervisor, block)
	p.Catalog.SplitTiers = p.Supervisor.SplitTiers
	p.Catalog.OwnProcesses = p.Supervisor.Scope != supervisor.Shared
	if d.absent(block.Tier) {
		d.mistake(block.Range, "Missing tier",
			"Plugin %q needs a tier, the highest that its tools may have: add tier = %q, %q or %q.",
			block.Name, tool.ReadOnly, tool.SideEffecting, tool.Privileged)
	} else if ceiling, ok := d.tier(block.Tier); ok {
		p.Catalog.Ceiling, p.TierPlace = ceiling, diag.Place(block.Tier.NameRange)
	}
	if claims, ok := d.choice(block.Claims, "ignore", "trust"); ok {
		p.Catalog.TrustClaims = claims == "trust"
	}
	p.Catalog.Tools = d.tools(block.Tools, p.Catalog.Ceiling)
	if !startable {
		own = nil
	}
	return p, own
}

// pluginPath returns the path of a plugin's binary. The default is the plugin's
// name.
func (d *decoder) pluginPath(block pluginBlock, pluginDir string) string {
	if block.Path == nil {
		return filepath.Join(pluginDir, block.Name)
	}
	path, ok := d.text(block.Path, "the path of a program")
	if !ok {
		return ""
	}
	switch {
	case path == "":
		d.mistake(block.Path.Expr.Range(), "Empty path", "Expected the path of the plugin's program: absolute, or relative to plugin_dir.")
		return ""
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	case !filepath.IsLocal(path):
		d.mistake(block.Path.Expr.Range(), "Path outside plugin_dir",
			"A relative path names a program in plugin_dir, and this one leads out of it. Write the absolute path.")
		return ""
	}
	return filepath.Join(pluginDir, path)
}

var sha256Pattern = lazyregexp.New(`^[0-9a-f]{64}$`)

const sha256Expected = "64 hexadecimal digits in lower case, as sha256sum prints them"

// sha256 reads the digest of a plugin's program; "" means any program.
func (d *decoder) sha256(attr *hcl.Attribute) string {
	s, ok := d.text(attr, sha256Expected)
	if !ok || s == "" {
		return ""
	}
	return d.hash(attr, s)
}

// hash checks the value of an argument that must be a SHA-256 digest.
func (d *decoder) hash(attr *hcl.Attribute, s string) string {
	if !sha256Pattern().MatchString(s) {
		d.mistake(attr.Expr.Range(), "Not a SHA-256", "Expected %s; this has %d characters.", sha256Expected, len([]rune(s)))
		return ""
	}
	return s
}

// tools reads the tool blocks of one plugin.
func (d *decoder) tools(blocks []toolBlock, ceiling tool.Tier) []catalog.ToolOptions {
	taken := make(map[string]hcl.Range) // names and aliases
	for _, block := range blocks {
		if first, ok := taken[block.Name]; ok {
			d.mistake(block.NameRange, "Duplicate tool", "Another block for tool %q is at %s. Put everything into one.", block.Name, diag.Place(first))
			continue
		}
		taken[block.Name] = block.NameRange
	}
	var tools []catalog.ToolOptions
	for _, block := range blocks {
		if !tool.ValidName(block.Name) {
			d.mistake(block.NameRange, "Invalid tool name",
				"%q cannot be a tool's name: expected a lower-case letter, then at most 63 lower-case letters, digits and _.", block.Name)
		}
		o := catalog.ToolOptions{Name: block.Name, Place: diag.Place(block.NameRange), Disabled: !d.flag(block.Enabled, true)}
		if tier, ok := d.tier(block.Tier); ok {
			if ceiling != 0 && tier > ceiling {
				d.mistake(block.Tier.Expr.Range(), "Tier above the ceiling",
					"The plugin's tier is %q, so none of its tools may be %q. Raise the plugin's tier, or lower this one.", ceiling, tier)
			}
			o.Tier = tier
		}
		if timeout, ok := d.duration(block.Timeout, durationExample); ok {
			o.Timeout = timeout
		}
		if size, ok := d.size(block.MaxOutput, sizeExample); ok {
			o.MaxOutput = size
		}
		o.Rate = d.rate(block.Rate)
		o.CacheTTL = d.cacheTTL(block.CacheTTL)
		o.Aliases = d.aliases(block, taken)
		tools = append(tools, o)
	}
	return tools
}

// maxCacheTTL bounds how long a result may be cached.
const maxCacheTTL = time.Hour

// cacheTTL reads how long results of a tool may be cached. "0s" turns the cache off
// and is returned as a negative duration.
func (d *decoder) cacheTTL(attr *hcl.Attribute) time.Duration {
	ttl, ok := d.durationWithin(attr, 0, maxCacheTTL, `a duration from "0s" (off) to "1h"`)
	if ok && ttl == 0 {
		return -1
	}
	return ttl
}

// aliases reads the aliases of a tool. A name or alias must be unique among the tools
// of one plugin.
func (d *decoder) aliases(block toolBlock, taken map[string]hcl.Range) []string {
	var aliases []string
	for _, w := range d.words(block.Aliases, `a list of names such as ["cat"]`) {
		first, used := taken[w.text]
		switch {
		case !tool.ValidName(w.text):
			d.mistake(w.expr.Range(), "Invalid alias",
				"%s cannot be a tool's name: expected a lower-case letter, then at most 63 lower-case letters, digits and _.", quote(w.expr, w.text))
		case w.text == block.Name:
			d.mistake(w.expr.Range(), "Useless alias", "The tool already has this name. Remove the alias.")
		case used:
			d.mistake(w.expr.Range(), "Duplicate name", "The name is also used at %s. Choose another one.", diag.Place(first))
		default:
			taken[w.text] = w.expr.Range()
			aliases = append(aliases, w.text)
		}
	}
	return aliases
}

// maxMaxCrashes bounds the crashes that the supervisor remembers of one plugin.
const maxMaxCrashes = 1000

// restart reads the restart block of a plugin.
func (d *decoder) restart(blocks []restartBlock) (r supervisor.Restart) {
	for _, block := range blocks {
		const expected = "a number of crashes from 1 to 1000"
		if n, ok := d.count(block.MaxCrashes, 1, expected); ok && n > maxMaxCrashes {
			d.mistake(block.MaxCrashes.Expr.Range(), "Out of range", "Expected %s for max_crashes.", expected)
		} else if ok {
			r.MaxCrashes = int(n)
		}
		for _, setting := range []struct {
			attr *hcl.Attribute
			into *time.Duration
		}{{block.Within, &r.Within}, {block.Pause, &r.Pause}, {block.MaxPause, &r.MaxPause}} {
			if t, ok := d.durationWithin(setting.attr, time.Second, day, `a duration from "1s" to "24h"`); ok {
				*setting.into = t
			}
		}
	}
	return r
}
