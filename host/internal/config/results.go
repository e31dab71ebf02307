package config

import (
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Results bound the stored results that were too long for their callers.
type Results struct {
	// TTL is how long a stored result can be read: from a minute to 7 days.
	TTL time.Duration `reload:"restart results.ttl"`
	// Quota bounds the results of one user, from 1 MiB to 16 GiB. The oldest
	// result is removed first.
	Quota tool.ByteSize `reload:"restart results.quota"`
}

const (
	defaultTTL   = time.Hour
	defaultQuota = 256 * tool.MiB

	minQuota = tool.MiB
	maxQuota = 16 * tool.GiB
)

// results reads the results block.
func (d *decoder) results(blocks []resultsBlock) Results {
	r := Results{TTL: defaultTTL, Quota: defaultQuota}
	for _, block := range blocks {
		if ttl, ok := d.durationWithin(block.TTL, time.Minute, 7*day, `a duration from "1m" to "7d"`); ok {
			r.TTL = ttl
		}
		if quota, ok := d.quota(block.Quota); ok {
			r.Quota = quota
		}
	}
	return r
}

func (d *decoder) quota(attr *hcl.Attribute) (tool.ByteSize, bool) {
	const expected = `a size from "1MiB" to "16GiB"`
	size, ok := d.size(attr, expected)
	if ok && (size < minQuota || size > maxQuota) {
		d.mistake(attr.Expr.Range(), "Out of range", "Expected %s for %s, not %q.", expected, attr.Name, size)
		return 0, false
	}
	return size, ok
}
