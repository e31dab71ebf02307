package config

import (
	"math"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Journal bounds the record of calls.
type Journal struct {
	// Keep is how long a row is kept, at least a day; 0 means forever.
	Keep time.Duration `reload:"restart journal.keep"`
	// MaxSize bounds the size of the record, at least 1 MiB; 0 means no bound.
	MaxSize tool.ByteSize `reload:"restart journal.max_size"`
}

const (
	defaultKeep    = 90 * day
	defaultMaxSize = tool.GiB

	// minKeep is the longest time that a question can be open: the record of its
	// call must last as long.
	minKeep    = day
	minMaxSize = tool.MiB
)

// journal reads the journal block.
func (d *decoder) journal(blocks []journalBlock) Journal {
	j := Journal{Keep: defaultKeep, MaxSize: defaultMaxSize}
	for _, block := range blocks {
		if d.is(block.Keep, unlimited) {
			j.Keep = 0
		} else if keep, ok := d.durationWithin(block.Keep, minKeep, math.MaxInt64, `at least a day such as "90d", or "unlimited",`); ok {
			j.Keep = keep
		}
		if d.is(block.MaxSize, unlimited) {
			j.MaxSize = 0
		} else if size, ok := d.journalSize(block.MaxSize); ok {
			j.MaxSize = size
		}
	}
	return j
}

func (d *decoder) journalSize(attr *hcl.Attribute) (tool.ByteSize, bool) {
	size, ok := d.size(attr, `a size such as "1GiB" or "unlimited"`)
	if ok && size < minMaxSize {
		d.mistake(attr.Expr.Range(), "Out of range", "Expected at least %q for %s.", minMaxSize, attr.Name)
		return 0, false
	}
	return size, ok
}
