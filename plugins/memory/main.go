// Command memory is a plugin that keeps notes for an agent between conversations
// and finds them again. Each user's notes are in a separate file.
package main

import (
	"context"
	"embed"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// bulkTimeout bounds an import or an export.
const bulkTimeout = 5 * time.Minute

// gcPercent is how far the heap grows before it is collected. Most of the heap is a
// long-lived index.
const gcPercent = 200

func main() {
	debug.SetGCPercent(gcPercent)
	newPlugin().Serve()
}

// newPlugin returns the plugin with all its tools.
func newPlugin() *sdk.Plugin {
	p := sdk.New("memory", "1.0.0")
	m := &memory{plugin: p}
	sdk.Configure(p, m.configure)
	add(p, m, search, tool.Spec{Name: "memory_search", Aliases: []string{"memory_recall"}, Tier: tool.ReadOnly, MaxOutput: 64 * tool.KiB})
	add(p, m, save, tool.Spec{Name: "memory_save", Aliases: []string{"memory_store"}, Tier: tool.SideEffecting})
	add(p, m, update, tool.Spec{Name: "memory_update", Tier: tool.SideEffecting})
	add(p, m, remove, tool.Spec{Name: "memory_delete", Aliases: []string{"memory_forget"}, Tier: tool.SideEffecting, Destructive: true})
	add(p, m, get, tool.Spec{Name: "memory_get", Tier: tool.ReadOnly, MaxOutput: 64 * tool.KiB})
	add(p, m, list, tool.Spec{Name: "memory_list", Tier: tool.ReadOnly, MaxOutput: 64 * tool.KiB})
	add(p, m, stats, tool.Spec{Name: "memory_stats", Tier: tool.ReadOnly})
	add(p, m, export, tool.Spec{Name: "memory_export", Tier: tool.SideEffecting, MaxOutput: tool.MiB, Timeout: bulkTimeout})
	add(p, m, importNotes, tool.Spec{Name: "memory_import", Tier: tool.SideEffecting, Timeout: bulkTimeout})
	return p
}

// add adds a tool. The description is in the file with the tool's name.
func add[In, Out any](p *sdk.Plugin, m *memory, run func(context.Context, *call, In) (Out, error), spec tool.Spec) {
	spec.Category = "memory"
	spec.Idempotent = spec.Tier == tool.ReadOnly
	spec.Description = sdk.Description(descriptions, spec.Name)
	sdk.AddTool(p, spec, func(ctx context.Context, c *sdk.Call, in In) (out Out, err error) {
		opened, done, err := m.open(ctx, c)
		if err != nil {
			return out, err
		}
		defer done()
		out, err = run(ctx, opened, in)
		return out, toolError(err)
	})
}

//go:embed descriptions
var descriptions embed.FS

// memory is the state that all tools share.
type memory struct {
	plugin *sdk.Plugin
	state  atomic.Pointer[state]
}
