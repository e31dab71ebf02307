package supervisor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

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
	proc, err := m.newReader().newProcess(program)
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

// newReader returns a pool that only tells what a reader would get.
func (m *manager) newReader() *pool { return newPool(m, owner{reader: true}, new(history)) }

// publishesAs reports whether the published tools are those of a program, with a digest.
func (m *manager) publishesAs(program, digest string) bool {
	m.publishMu.Lock()
	defer m.publishMu.Unlock()
	return m.program == program && m.published == digest
}

// readerHas reports whether a reader has a tool as it is published with a digest. Other tools of a
// reader may differ, such as one that says that it needs a network.
func (p *pool) readerHas(i *instance, digest, name string) bool {
	if !p.of.reader {
		return false
	}
	if !p.publishesAs(i.digest, digest) {
		return false
	}
	p.publishMu.Lock()
	tools := p.tools
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
	return mine != nil && bytes.Equal(mine, encoded(tools))
}

// BrokenClaim says that a tool which claims to be read_only may have tried to change something.
type BrokenClaim struct {
	Tool string `json:"tool"`
	// Sign is the text of the last error that says so.
	Sign string `json:"sign"`
	// Count is how often that was, and Last is when, since the host started.
	Count int       `json:"count"`
	Last  time.Time `json:"last"`
}

// maxBrokenClaims bounds the tools of a plugin with broken claims that are remembered.
const maxBrokenClaims = 500

// NoteBrokenClaim remembers a sign that a call in a reader tried to change something, for
// [State.BrokenClaims].
func (s *Supervisor) NoteBrokenClaim(plugin, tool, sign string) {
	m := s.manager(plugin)
	if m == nil {
		return // a reload has removed it
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	claim, known := m.brokenClaims[tool]
	if !known && len(m.brokenClaims) >= maxBrokenClaims {
		return
	}
	m.brokenClaims[tool] = BrokenClaim{Tool: tool, Sign: sign, Count: claim.Count + 1, Last: time.Now()}
}

// claimsBroken returns the broken claims, by tool. The caller holds mu.
func (m *manager) claimsBroken() []BrokenClaim {
	return slices.SortedFunc(maps.Values(m.brokenClaims), func(a, b BrokenClaim) int { return cmp.Compare(a.Tool, b.Tool) })
}
