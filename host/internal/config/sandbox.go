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

// confinement is a sandbox, with the changes of a plugin's own block.
type confinement struct {
	limits  sandbox.Limits
	access  sandbox.Confinement
	passEnv []string
	said    said
	// wrong reports whether a block has mistakes, except in its paths: see
	// [hostPaths].
	wrong bool
}

// defaultSandbox is the sandbox of plugins that name none. If no block has this name,
// it is the built-in sandbox.
const defaultSandbox = "default"

// builtIn returns the sandbox with all defaults.
func builtIn() confinement {
	return confinement{limits: sandbox.DefaultLimits(), access: sandbox.DefaultConfinement()}
}

// sandboxes reads the sandbox blocks. Each changes the built-in sandbox.
func (d *decoder) sandboxes(blocks []sandboxBlock) map[string]confinement {
	known := map[string]confinement{defaultSandbox: builtIn()}
	firsts := make(map[string]hcl.Range)
	for _, block := range blocks {
		if first, taken := firsts[block.Name]; taken {
			d.mistake(block.NameRange, "Duplicate sandbox",
				"Another sandbox %q is at %s. Give each sandbox its own name.", block.Name, diag.Place(first))
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

// pluginSandbox returns the sandbox of one plugin: the sandbox that it names, or the
// default one with the changes of the plugin's own block.
func (d *decoder) pluginSandbox(block pluginBlock, known map[string]confinement) confinement {
	c := known[defaultSandbox]
	if block.SandboxName != nil && len(block.Sandbox) > 0 {
		d.mistake(block.Sandbox[0].Range, "Two sandboxes",
			"The plugin names a sandbox at %s and has a sandbox block too. Keep one: the block changes single arguments of sandbox %q.",
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

// confine applies a block. Its lists replace other lists.
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

// passEnv reads the names of variables that a plugin gets from the host's environment.
// It refuses those that the host sets itself.
func (d *decoder) passEnv(attr *hcl.Attribute) []string {
	var names []string
	for _, w := range d.words(attr, `a list of names such as ["LANG", "TZ"]`) {
		switch {
		case !envNamePattern.MatchString(w.text):
			d.mistake(w.expr.Range(), "Invalid variable name",
				"%s cannot be the name of an environment variable. Expected letters, digits and _: names only, without values.", quote(w.expr, w.text))
		case strings.HasPrefix(w.text, "PLUGIN_") || strings.HasPrefix(w.text, "TOOLHOST_"):
			d.mistake(w.expr.Range(), "Reserved variable", "The host sets the variables that begin with PLUGIN_ or TOOLHOST_ for each plugin. Remove it.")
		case slices.Contains(names, w.text):
			d.mistake(w.expr.Range(), "Duplicate variable", "%s is already in the list.", quote(w.expr, w.text))
		default:
			names = append(names, w.text)
			d.warnPass(w)
		}
	}
	return names
}
