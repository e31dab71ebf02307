package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolhost/toolhost/sdk/tool"
)

// RawTool is a tool whose schemas are not known when the plugin is compiled.
type RawTool struct {
	// Spec is as in [AddRawTool].
	Spec tool.Spec
	// Run is as in [AddRawTool].
	Run func(context.Context, *Call, json.RawMessage) (tool.Result, error)
}

// SetRawTools replaces the tools that depend on the settings: those that the function
// given to [Configure] has added, and those of an earlier SetRawTools. That function may
// call it, and any goroutine later, such as when another server announces other tools.
// Then it tells the host and returns at once. Calls of a removed tool come to their end.
// The host takes a few changes in a minute; of more, the last one counts.
//
// If a tool has a mistake, SetRawTools returns every [DefinitionError], joined with
// [errors.Join], and changes nothing.
func SetRawTools(p *Plugin, tools []RawTool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.served {
		return errors.New("set the tools: the plugin is not served yet; call SetRawTools in Configure or later")
	}
	next := &Plugin{names: map[string]string{}}
	for _, e := range p.tools[:p.static] {
		for _, name := range append([]string{e.spec.Name}, e.spec.Aliases...) {
			next.names[name] = e.spec.Name
		}
	}
	for _, t := range tools {
		t.Spec.Aliases = slices.Clone(t.Spec.Aliases)
		AddRawTool(next, t.Spec, t.Run)
	}
	if err := next.Err(); err != nil {
		return err
	}
	all := slices.Concat(p.tools[:p.static], next.tools)
	if size, most := sizeOf(all); size > most {
		return fmt.Errorf("set the tools: their descriptions and schemas have %v, more than the %v that fit into a message", size, most)
	}
	p.tools, p.names = all, next.names
	p.revision++
	select {
	case p.changed <- struct{}{}:
	default: // it has a signal
	}
	return nil
}

// tellTools tells the host about changes of the tools until ctx ends. It sends one change
// at a time: the host answers when it has taken it.
func (p *Plugin) tellTools(ctx context.Context) {
	for {
		p.mu.Lock()
		tools, revision, known := p.tools, p.revision, p.revision == p.told
		p.mu.Unlock()
		if known {
			select {
			case <-p.changed:
				continue
			case <-ctx.Done():
				return
			}
		}
		_, err := p.host.ask(ctx, hostRequest{changed: true, tools: tools})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			p.logger.Warn("the host does not take the tools of the plugin", "error", err)
		}
		p.mu.Lock()
		p.told = revision
		p.mu.Unlock()
	}
}
