package pipeline

import (
	"maps"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// metaPrefix begins the keys of metadata that are the host's own.
	metaPrefix = "toolhost/"
	// metaUntrusted is the key by which a plugin warns of what it returns.
	metaUntrusted = "untrusted"
)

// program is what has a log line of its own about metadata that was dropped.
type program struct{ plugin, digest string }

// dropForged returns a result without the metadata that only the host may set: where the
// whole of a result is, and keys that begin with "toolhost/". A plugin may say that its
// result is untrusted, and not that it is trusted. What is dropped is logged once for
// each program.
func (p *Pipeline) dropForged(c *call, result tool.Result) tool.Result {
	var forged []string
	for key, value := range result.Metadata {
		if isForged(key, value) {
			forged = append(forged, key)
		}
	}
	if len(forged) == 0 {
		return result
	}
	facts := maps.Clone(result.Metadata)
	for _, key := range forged {
		delete(facts, key)
	}
	if result.Metadata = facts; len(facts) == 0 {
		result.Metadata = nil
	}
	if _, known := p.forgers.LoadOrStore(program{c.entry.Plugin, c.entry.Digest}, true); !known {
		slices.Sort(forged)
		p.opts.Logger.Warn("metadata of a plugin is dropped, since only the host may set it", "call", c.id,
			"plugin", c.entry.Plugin, "tool", c.entry.Spec.Name, "key", tool.VisibleName(schema.Shorten(forged[0])), "keys", len(forged))
	}
	return result
}

// isForged reports whether a plugin may not set a key to a value. Many readers of JSON
// ignore the case of names.
func isForged(key string, value any) bool {
	switch {
	case strings.EqualFold(key, metaUntrusted):
		return key != metaUntrusted || value != true
	case strings.EqualFold(key, MetaWhole):
		return true
	}
	name, _, isPath := strings.Cut(key, "/")
	return isPath && strings.EqualFold(name+"/", metaPrefix)
}
