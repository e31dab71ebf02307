package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/sdk/tool"
)

// A plugin with [Plugin.SplitTiers] has two processes for each owner: the reader, which the kernel
// keeps from changing anything and which serves the calls of tier read_only, and the other one. They
// are processes of two pools, so that each starts, ends and crashes by itself. The reader publishes
// no tools.

// prove reports whether this machine can keep a reader from changing anything, as an error for
// operators. It tries once, before the first process of the plugin starts: a plugin whose reader
// cannot start does not start at all, rather than at its first read.
func (m *manager) prove(ctx context.Context, program *process.Program) error {
	if !m.plugin.SplitTiers || m.proven.Load() {
		return nil
	}
	reader := newPool(m, owner{reader: true}, new(history))
	proc, err := reader.newProcess(program)
	if err != nil {
		return err
	}
	defer proc.Discard()
	if _, err := proc.Try(ctx); err != nil {
		return err
	}
	m.proven.Store(true)
	return nil
}

// readerHas reports whether a reader has a tool as it is published with a digest. Other tools of a
// reader may differ, such as one that says that it needs a network.
func (p *pool) readerHas(i *instance, digest, name string) bool {
	if !p.of.reader {
		return false
	}
	p.publishMu.Lock()
	published, program, tools := p.published, p.program, p.tools
	p.publishMu.Unlock()
	encoded := func(tools []tool.Spec) []byte {
		at := slices.IndexFunc(tools, func(s tool.Spec) bool { return s.Name == name })
		if at < 0 {
			return nil
		}
		text, err := json.Marshal(tools[at]) // as in publication
		if err != nil {
			return nil
		}
		return text
	}
	mine := encoded(i.about.Tools)
	return digest == published && program == i.digest && mine != nil && bytes.Equal(mine, encoded(tools))
}
