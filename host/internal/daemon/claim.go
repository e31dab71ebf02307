package daemon

import (
	"context"
	"fmt"
	"slices"

	"github.com/toolhost/toolhost/host/internal/tools/lock"
)

// provenWrites are the signs of a write that nothing else explains. A read may be refused a permission,
// too.
func provenWrites() []string { return []string{"read-only file system", "erofs"} }

// brokenClaim notes that a tool which claims to be read_only seems to have tried to change something.
// A tool whose definition was accepted is then no longer accepted: its definition was not true.
func (d *Daemon) brokenClaim(ctx context.Context, plugin, tool, sign string) {
	p := &d.parts
	p.supervisor.NoteBrokenClaim(plugin, tool, sign)
	if _, accepted := p.lock.accepted().Accepted(plugin, tool); !accepted || !slices.Contains(provenWrites(), sign) {
		return
	}
	change := fmt.Sprintf("no longer accepts the tool %s of the plugin %q: it claims to be read_only, and tried to change something (%s)", tool, plugin, sign)
	if err := p.journal.ChangeBy(ctx, "", "host", change); err != nil {
		d.opts.Logger.Error("the journal cannot record a broken claim", "plugin", plugin, "tool", tool, "error", err)
	}
	err := p.lock.change(ctx, p.catalog, func(l *lock.Lock) error {
		l.Forget(plugin, tool)
		return nil
	})
	if err != nil {
		d.opts.Logger.Error("a tool with a broken claim stays accepted", "plugin", plugin, "tool", tool, "error", err)
		return
	}
	p.watcher.poke()
	d.opts.Logger.Warn("a tool is no longer accepted, since its claim to be read_only is broken", "plugin", plugin, "tool", tool, "then", d.command("plugins diff "+plugin))
}
