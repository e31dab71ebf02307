package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// confinement is what a sandbox block says, and the block of a plugin over it.
type confinement struct {
	limits  sandbox.Limits
	access  sandbox.Confinement
	passEnv []string
	said    said
	// wrong says that a block has mistakes. Those of its paths are told later:
	// see [hostPaths].
	wrong bool
}

// defaultSandbox is the sandbox of plugins that name none. Without a block of
// that name it is the built-in one.
const defaultSandbox = "default"

// builtIn is the sandbox of which nothing is said.
func builtIn() confinement {
	return confinement{limits: sandbox.DefaultLimits(), access: sandbox.DefaultConfinement()}
}

// sandboxes reads the sandbox blocks. Each starts from the built-in one.
func (d *decoder) sandboxes(blocks []sandboxBlock) map[string]confinement {
	known := map[string]confinement{defaultSandbox: builtIn()}
	firsts := make(map[string]hcl.Range)
	for _, block := range blocks {
		if first, taken := firsts[block.Name]; taken {
			d.mistake(block.NameRange, "Duplicate sandbox",
				"There is a sandbox %q at %s already; each needs a name of its own.", block.Name, diag.Place(first))
		} else {
			firsts[block.Name] = block.NameRange
		}
		if !tool.ValidPluginName(block.Name) {
			d.mistake(block.NameRange, "Invalid sandbox name",
				"%q cannot be a sandbox's name: expected a lower-case letter, then at most 63 lower-case letters, digits, _ and -.", block.Name)
		}
		c := builtIn()
		d.confine(&c, block)
		known[block.Name] = c
	}
	return known
}

// pluginSandbox is the sandbox of one plugin: the one that it names, or the
// default one with the fields that its own block gives.
func (d *decoder) pluginSandbox(block pluginBlock, known map[string]confinement) confinement {
	c := known[defaultSandbox]
	if block.SandboxName != nil && len(block.Sandbox) > 0 {
		d.mistake(block.Sandbox[0].Range, "Two sandboxes",
			"The plugin names a sandbox at %s and has a sandbox block too. Keep one: the block changes single fields of sandbox %q.",
			diag.Place(block.SandboxName.NameRange), defaultSandbox)
	}
	if name, ok := d.text(block.SandboxName, "the name of a sandbox"); ok {
		named, ok := known[name]
		if !ok {
			names := slices.Collect(maps.Keys(known))
			d.mistake(block.SandboxName.Expr.Range(), "Unknown sandbox", "There is no sandbox block named %s.%s",
				quote(block.SandboxName.Expr, name), diag.DidYouMean(name, names))
		}
		c = named
	}
	for _, own := range block.Sandbox {
		d.confine(&c, own.fields())
	}
	d.warnConfinement(&c)
	return c
}

// confine overrides what the block gives. Lists are replaced, not added to.
func (d *decoder) confine(c *confinement, block sandboxBlock) {
	before := len(d.mistakes)
	d.isolation(c, block)
	d.runAs(c, block.RunAs)
	for _, limits := range block.Limits {
		d.limits(&c.limits, limits)
		d.limitProcesses(c, limits.Processes)
		d.limitTmp(&c.access.TmpSize, limits.TmpSize)
	}
	for _, filesystem := range block.Filesystem {
		d.filesystem(c, filesystem)
	}
	for _, network := range block.Network {
		d.network(c, network)
	}
	for _, env := range block.Env {
		if env.Pass != nil {
			c.passEnv = d.passEnv(env.Pass)
		}
	}
	d.contradictions(c, block)
	c.wrong = c.wrong || len(d.mistakes) > before
}

var envNamePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// passEnv reads the names of variables that a plugin gets from the host's
// environment. Those of the handshake are the host's alone.
func (d *decoder) passEnv(attr *hcl.Attribute) []string {
	var names []string
	for _, w := range d.words(attr, `a list of names such as ["LANG", "TZ"]`) {
		switch {
		case !envNamePattern.MatchString(w.text):
			d.mistake(w.expr.Range(), "Invalid variable name",
				"%s cannot be the name of an environment variable: expected letters, digits and _. Values are not given here, only names.", quote(w.expr, w.text))
		case strings.HasPrefix(w.text, "PLUGIN_") || strings.HasPrefix(w.text, "TOOLHOST_"):
			d.mistake(w.expr.Range(), "Reserved variable", "Variables that begin with PLUGIN_ or TOOLHOST_ are set by the host for each plugin and cannot be passed on.")
		case slices.Contains(names, w.text):
			d.mistake(w.expr.Range(), "Duplicate variable", "%s is in the list already.", quote(w.expr, w.text))
		default:
			names = append(names, w.text)
			d.warnPass(w)
		}
	}
	return names
}
