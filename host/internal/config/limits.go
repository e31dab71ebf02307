package config

import (
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

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
	t, ok := d.duration(attr, `a duration in whole seconds such as "90s", or "unlimited"`)
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
