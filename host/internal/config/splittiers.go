package config

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
)

// splitNetwork is the value of split_tiers that leaves the reader the plugin's network.
const splitNetwork = "network"

// splitTiers reads whether read_only calls have a process that can change nothing.
func (d *decoder) splitTiers(p *supervisor.Plugin, block pluginBlock) {
	attr := block.SplitTiers
	if d.is(attr, splitNetwork) {
		p.SplitTiers, p.ReaderNetwork = true, true
	} else if v, ok := d.value(attr, cty.Bool, `true, false or "network"`); ok {
		p.SplitTiers = v.True()
	}
	if !p.SplitTiers {
		return
	}
	at, c := attr.Expr.Range(), &p.Confinement
	for _, layer := range sandbox.ReaderLayers(p.ReaderNetwork) {
		if !c.Isolation.CanHave(layer) {
			d.mistake(at, "Nothing to prove it",
				`isolation = %q cannot keep a process from changing anything: it does not have the layer %s. Expected "isolated" or "strict", or "auto".`, c.Isolation, layer)
			return
		}
	}
	switch changes := c.Workspace == sandbox.WriteWorkspace || len(c.Write) > 0; {
	case p.ReaderNetwork && c.Network == sandbox.NetworkNone:
		d.warn(at, warnUnused, `split_tiers: the plugin has no network that its process for read_only calls could have. Write true.`)
	case !changes && (c.Network == sandbox.NetworkNone || p.ReaderNetwork):
		d.warn(at, warnUnused, "split_tiers has little effect: the sandbox of the plugin lets no process change anything but its own state. Remove it, or write claims = \"trust\".")
	}
}
