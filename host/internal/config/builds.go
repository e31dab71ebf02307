package config

import (
	"fmt"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

// builds reads whether commands that build and test the workspace run unasked. They execute
// what the workspace names, so the plugin's sandbox must hold them: it becomes strict, so that
// the plugin does not start where the machine lacks a layer.
func (d *decoder) builds(block pluginBlock, c *sandbox.Confinement, lists *policy.Commands) policy.Level {
	var level policy.Level
	for _, b := range block.Approval {
		word, ok := d.choice(b.Builds, policy.Allow.String(), policy.Ask.String())
		if !ok || word != policy.Allow.String() {
			continue
		}
		level = policy.Level{Verdict: policy.Allow, Place: diag.Place(b.Builds.NameRange)}
		unsafe := func(why string, args ...any) {
			d.mistake(b.Builds.NameRange, "Unsafe builds", "A build executes what the workspace names, so it runs unasked only in a strict sandbox without a network. %s",
				fmt.Sprintf(why, args...))
		}
		switch {
		case lists == nil:
			d.mistake(b.Builds.NameRange, "Useless builds", "Without a commands block in the policy, the host does not read commands. Add one.")
		case len(c.Exec) == 0:
			d.mistake(b.Builds.NameRange, "Useless builds", "The plugin may execute nothing. Set exec in its sandbox, or remove this line.")
		case c.Network != sandbox.NetworkNone:
			unsafe("Set mode = \"none\" in the network block of this plugin.")
		case c.Isolation != sandbox.Auto && c.Isolation != sandbox.Strict:
			unsafe("Set isolation = %q, or remove isolation = %q.", sandbox.Strict, c.Isolation)
		case c.WarnOnMissing:
			unsafe("Remove on_missing = \"warn\".")
		default:
			c.Isolation = sandbox.Strict
		}
	}
	return level
}
