package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// confinement is what a sandbox block says.
type confinement struct {
	limits  sandbox.Limits
	passEnv []string
	// wrong says that the block has mistakes.
	wrong bool
}

// defaultSandbox is the sandbox of plugins that name none. Without a block of
// that name it is the built-in one.
const defaultSandbox = "default"

// sandboxes reads the sandbox blocks. Each starts from the built-in limits.
func (d *decoder) sandboxes(blocks []sandboxBlock) map[string]confinement {
	known := map[string]confinement{defaultSandbox: {limits: sandbox.DefaultLimits()}}
	firsts := make(map[string]hcl.Range)
	for _, block := range blocks {
		if first, taken := firsts[block.Name]; taken {
			d.mistake(block.NameRange, "Duplicate sandbox",
				"There is a sandbox %q at %s already; each needs a name of its own.", block.Name, place(first))
		} else {
			firsts[block.Name] = block.NameRange
		}
		if !tool.ValidPluginName(block.Name) {
			d.mistake(block.NameRange, "Invalid sandbox name",
				"%q cannot be a sandbox's name: expected a lower-case letter, then at most 63 lower-case letters, digits, _ and -.", block.Name)
		}
		c := confinement{limits: sandbox.DefaultLimits()}
		d.confine(&c, block.Limits, block.Env)
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
			place(block.SandboxName.NameRange), defaultSandbox)
	}
	if name, ok := d.text(block.SandboxName, "the name of a sandbox"); ok {
		named, ok := known[name]
		if !ok {
			names := slices.Collect(maps.Keys(known))
			d.mistake(block.SandboxName.Expr.Range(), "Unknown sandbox", "There is no sandbox block named %s.%s",
				quote(block.SandboxName.Expr, name), didYouMean(name, names))
		}
		c = named
	}
	for _, own := range block.Sandbox {
		d.confine(&c, own.Limits, own.Env)
	}
	return c
}

// confine overrides the fields of c that the blocks give.
func (d *decoder) confine(c *confinement, limits []limitsBlock, env []envBlock) {
	before := len(d.mistakes)
	for _, block := range limits {
		d.limits(&c.limits, block)
	}
	for _, block := range env {
		if block.Pass != nil {
			c.passEnv = d.passEnv(block.Pass)
		}
	}
	c.wrong = c.wrong || len(d.mistakes) > before
}

func (d *decoder) limits(l *sandbox.Limits, block limitsBlock) {
	d.limitSize(&l.Memory, block.Memory)
	if l.Memory > 0 && l.Memory < sandbox.MinMemory && block.Memory != nil {
		d.mistake(block.Memory.Expr.Range(), "Too little memory",
			"A plugin cannot start with less than %s: its runtime and TLS need that much before it does anything. Expected at least %q.",
			sandbox.MinMemory, sandbox.MinMemory)
	}
	d.limitCount(&l.OpenFiles, block.OpenFiles, 1)
	d.limitCount(&l.Processes, block.Processes, 0)
	d.limitSize(&l.FileSize, block.FileSize)
	d.limitSize(&l.Stack, block.Stack)
	d.limitCore(&l.Core, block.Core)
	d.limitCPUTime(&l.CPUTime, block.CPUTime)
	d.limitSize(&l.AddressSpace, block.AddressSpace)
}

func (d *decoder) limitSize(limit *tool.ByteSize, attr *hcl.Attribute) {
	if d.is(attr, unlimited) {
		*limit = 0
	} else if size, ok := d.size(attr, sizeExample+` or "unlimited"`); ok {
		*limit = size
	}
}

func (d *decoder) limitCount(limit *uint64, attr *hcl.Attribute, least uint64) {
	if d.is(attr, unlimited) {
		*limit = 0
	} else if n, ok := d.count(attr, least, `a whole number or "unlimited"`); ok {
		*limit = n
	}
}

// limitCore reads the one limit that may be zero and has no "unlimited".
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

func (d *decoder) limitCPUTime(limit *time.Duration, attr *hcl.Attribute) {
	if d.is(attr, unlimited) {
		*limit = 0
		return
	}
	t, ok := d.duration(attr, `a duration in whole seconds such as "90s", or "unlimited"`)
	if !ok {
		return
	}
	if t%time.Second != 0 {
		d.mistake(attr.Expr.Range(), "Not whole seconds", "The kernel counts cpu_time in whole seconds: expected %q or %q.",
			t.Truncate(time.Second)+time.Second, unlimited)
		return
	}
	*limit = t
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
		}
	}
	return names
}
