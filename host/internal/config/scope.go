package config

import (
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxInstances bounds the processes of one plugin. A higher number is a mistake.
const maxInstances = 10_000

// scope reads whose calls share a process of a plugin, and how many processes there may be.
func (d *decoder) scope(p *supervisor.Plugin, block pluginBlock, enabled bool) {
	name, ok := d.choice(block.IsolationScope, supervisor.Scopes()...)
	if ok {
		if scope, err := supervisor.ParseScope(name); err == nil {
			p.Scope = scope
		}
	}
	d.scopeOfWorkspace(p, block, enabled)
	at := block.NameRange
	if block.IsolationScope != nil {
		at = block.IsolationScope.Expr.Range()
	}
	d.instances(&p.MaxInstances, block.MaxInstances, p.Scope == supervisor.Shared, supervisor.PerUser, supervisor.PerSession)
	d.instances(&p.MaxPerUser, block.MaxPerUser, p.Scope != supervisor.PerSession, supervisor.PerSession)
	if p.Scope == supervisor.Shared {
		return
	}
	if p.Eager {
		d.mistake(block.Start.Expr.Range(), "Nothing to start",
			"With isolation_scope = %q (%s), a process starts at the first call of each %s. Remove start, or the scope.", p.Scope, diag.Place(at), p.Scope)
	}
	apart := []sandbox.Layer{sandbox.LayerPIDNS, sandbox.LayerIPCNS, sandbox.LayerMounts, sandbox.LayerProc}
	for _, layer := range apart {
		if !p.Confinement.Isolation.CanHave(layer) {
			d.mistake(at, "Not apart",
				`isolation = %q does not keep the processes of one plugin apart, so each %s could reach those of others. Expected "isolated" or "strict", or "auto".`,
				p.Confinement.Isolation, p.Scope)
			return
		}
	}
	p.Confinement.Require = slices.Concat(p.Confinement.Require, apart)
	slices.Sort(p.Confinement.Require)
	p.Confinement.Require = slices.Compact(p.Confinement.Require)
}

// instances reads a number of processes, which has a meaning with some scopes only.
func (d *decoder) instances(n *int, attr *hcl.Attribute, useless bool, with ...supervisor.Scope) {
	const expected = "a whole number of processes"
	given, ok := d.count(attr, 1, expected)
	var names []string
	for _, scope := range with {
		names = append(names, scope.String())
	}
	switch {
	case !ok:
	case useless:
		d.mistake(attr.NameRange, "Useless "+attr.Name, "It has a meaning only with isolation_scope = %s. Remove it, or add that.", diag.Words(names))
	case given > maxInstances:
		d.mistake(attr.Expr.Range(), "Wrong number", "Expected %s for %s, at most %d.", expected, attr.Name, maxInstances)
	default:
		*n = int(given)
	}
}

// instancesMemory reads the bound on the memory of all processes, in which each plugin must find room.
func (d *decoder) instancesMemory(attr *hcl.Attribute, plugins []Plugin) tool.ByteSize {
	size, ok := d.size(attr, `a size such as "8GiB"`)
	if !ok {
		return 0
	}
	for _, p := range plugins {
		switch own := p.Supervisor.Limits.Memory; {
		case !p.Enabled:
		case own == 0:
			d.mistake(attr.Expr.Range(), "Unlimited plugin", "The processes of plugin %q (%s) have no memory limit to count. Give its sandbox a limits.memory.", p.Supervisor.Name, p.Place)
		case own > size:
			d.mistake(attr.Expr.Range(), "Too little memory", "A process of plugin %q (%s) may have %v (limits.memory), so none would start. Raise instances_memory, or lower that limit.",
				p.Supervisor.Name, p.Place, own)
		}
	}
	return size
}
