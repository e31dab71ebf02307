package config

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/internal/lazyregexp"
	"github.com/toolhost/toolhost/sdk/tool"
)

// confinement is a sandbox, with the changes of a plugin's own block.
type confinement struct {
	limits  sandbox.Limits
	access  sandbox.Confinement
	network egress.Rules // with mode = "proxy"
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
		d.unique("sandbox", block.Name, block.NameRange, firsts)
		d.validName("sandbox", block.Name, block.NameRange)
		c := builtIn()
		d.confine(&c, block.Inside)
		known[block.Name] = c
	}
	return known
}

// pluginSandbox returns the sandbox of one plugin: the sandbox that it names, or the
// default one with the changes of the plugin's own block.
func (d *decoder) pluginSandbox(block pluginBlock, known map[string]confinement) confinement {
	c := known[defaultSandbox]
	if block.SandboxName == nil {
		d.sandboxesUsed = append(d.sandboxesUsed, defaultSandbox)
	}
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
		d.sandboxesUsed = append(d.sandboxesUsed, name)
		c = named
	}
	for _, own := range block.Sandbox {
		d.confine(&c, own.Inside)
	}
	d.checkNetwork(&c, block)
	d.warnConfinement(&c)
	return c
}

// confine applies a block. Its lists replace other lists.
func (d *decoder) confine(c *confinement, inside hcl.Body) {
	before := len(d.mistakes)
	var block sandboxArguments
	d.decodeBody(inside, &block)
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

var envNamePattern = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// passEnv reads the names of variables that a plugin gets from the host's environment.
// It refuses those that the host sets itself.
func (d *decoder) passEnv(attr *hcl.Attribute) []string {
	var names []string
	for _, w := range d.words(attr, `a list of names such as ["LANG", "TZ"]`) {
		switch {
		case !envNamePattern().MatchString(w.text):
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

// limits reads the limits block.
func (d *decoder) limits(l *sandbox.Limits, block limitsBlock) {
	d.limitSize(&l.Memory, block.Memory)
	if l.Memory > 0 && l.Memory < sandbox.MinMemory && block.Memory != nil {
		d.mistake(block.Memory.Expr.Range(), "Too little memory",
			"A plugin needs %s to start, for its runtime and TLS. Expected at least %q.",
			sandbox.MinMemory, sandbox.MinMemory)
	}
	d.limitCount(&l.OpenFiles, block.OpenFiles)
	d.limitSize(&l.FileSize, block.FileSize)
	d.limitSize(&l.Stack, block.Stack)
	d.limitCore(&l.Core, block.Core)
	d.limitCPUTime(&l.CPUTime, block.CPUTime)
	d.limitCPUs(&l.CPUs, block.CPUs)
	d.limitSize(&l.AddressSpace, block.AddressSpace)
}

func (d *decoder) limitSize(limit *tool.ByteSize, attr *hcl.Attribute) {
	if d.is(attr, unlimited) {
		*limit = 0
	} else if size, ok := d.size(attr, sizeExample+` or "unlimited"`); ok {
		*limit = size
	}
}

func (d *decoder) limitCount(limit *uint64, attr *hcl.Attribute) {
	if d.is(attr, unlimited) {
		*limit = 0
	} else if n, ok := d.count(attr, 1, `a whole number or "unlimited"`); ok {
		*limit = n
	}
}

// limitProcesses reads the limit of processes, where 0 means that the sandbox
// chooses.
func (d *decoder) limitProcesses(c *confinement, attr *hcl.Attribute) {
	if d.is(attr, unlimited) {
		c.limits.Processes, c.access.UnlimitedProcesses = 0, true
	} else if n, ok := d.count(attr, 0, `a whole number (0: the sandbox chooses) or "unlimited"`); ok {
		c.limits.Processes, c.access.UnlimitedProcesses = n, false
	}
}

// limitTmp reads the size of the temporary directories, which are in memory.
func (d *decoder) limitTmp(limit *tool.ByteSize, attr *hcl.Attribute) {
	if d.is(attr, unlimited) {
		d.mistake(attr.Expr.Range(), "Not a size", "Expected %s for %s. Temporary files are in memory, so they always have a limit.",
			sizeExample, attr.Name)
	} else if size, ok := d.size(attr, sizeExample); ok {
		*limit = size
	}
}

// limitCore reads the limit of core files, which may be zero but not unlimited.
func (d *decoder) limitCore(limit *tool.ByteSize, attr *hcl.Attribute) {
	const expected = `a size such as "0B" or "64MiB"`
	s, ok := d.text(attr, expected)
	if !ok {
		return
	}
	size, err := tool.ParseByteSize(s)
	if err != nil {
		d.mistake(attr.Expr.Range(), "Not a size", "Expected %s for core, not %s. Core files always have a limit.", expected, quote(attr.Expr, s))
		return
	}
	*limit = size
}

// limitCPUs reads the limit of processors, which may be a fraction.
func (d *decoder) limitCPUs(limit *float64, attr *hcl.Attribute) {
	const expected = `a number of processors such as 0.5 or 2, or "unlimited"`
	if d.is(attr, unlimited) {
		*limit = 0
		return
	}
	v, ok := d.value(attr, cty.Number, expected)
	if !ok {
		return
	}
	n, _ := v.AsBigFloat().Float64()
	if n < sandbox.MinCPUs || n > maxCPUs {
		d.mistake(attr.Expr.Range(), "Wrong number", "Expected %s, at least %v, for %s.", expected, sandbox.MinCPUs, attr.Name)
		return
	}
	*limit = n
}

// maxCPUs is more than any machine has.
const maxCPUs = 1 << 16

func (d *decoder) limitCPUTime(limit *time.Duration, attr *hcl.Attribute) {
	if d.is(attr, unlimited) {
		*limit = 0
		return
	}
	t, ok := d.duration(attr, `a duration in whole seconds such as "90s" or "unlimited"`)
	if !ok {
		return
	}
	if t%time.Second != 0 {
		d.mistake(attr.Expr.Range(), "Not whole seconds", "The kernel counts cpu_time in whole seconds. Expected %q or %q.",
			t.Truncate(time.Second)+time.Second, unlimited)
		return
	}
	*limit = t
}
