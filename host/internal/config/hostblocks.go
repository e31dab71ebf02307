package config

import (
	"math"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Approvals bound how long a person has to answer.
type Approvals struct {
	// Timeout is how long a question stays open; then the call is refused.
	// From 10 seconds to 24 hours.
	Timeout time.Duration `reload:"restart approvals.timeout"`
	// Patience is how long a client waits for a call, whether it waits for a person
	// or runs, until it gets the answer that the call continues; 0 means that it
	// does not wait for a person. At most 10 minutes, and never more than Timeout.
	Patience time.Duration `reload:"restart server.patience"`
}

const (
	defaultTimeout  = 10 * time.Minute
	defaultPatience = 45 * time.Second
)

// approvals reads the approvals block, and the patience of the server block.
func (d *decoder) approvals(blocks []approvalsBlock, servers []serverBlock) Approvals {
	a := Approvals{Timeout: defaultTimeout, Patience: defaultPatience}
	former := false
	for _, block := range blocks {
		timeout, ok := d.durationWithin(block.Timeout, 10*time.Second, day, `a duration from "10s" to "24h"`)
		if ok {
			a.Timeout = timeout
			a.Patience = min(a.Patience, timeout)
		}
		former = former || block.Patience != nil
		d.patience(block.Patience, &a)
	}
	for _, block := range servers {
		if block.Patience != nil && former {
			d.mistake(block.Patience.Range, "Patience is given twice",
				"approvals.patience is the former name of server.patience. Remove it from the approvals block.")
		}
		d.patience(block.Patience, &a)
	}
	return a
}

func (d *decoder) patience(attr *hcl.Attribute, a *Approvals) {
	patience, ok := d.durationWithin(attr, 0, 10*time.Minute, `a duration from "0s" to "10m"`)
	if !ok {
		return
	}
	if patience > a.Timeout {
		d.mistake(attr.Expr.Range(), "Patience beyond the timeout",
			"The question closes after %v (timeout). Expected at most that for patience.", a.Timeout)
	}
	a.Patience = patience
}

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
		if quota, ok := d.sizeWithin(block.Quota, minQuota, maxQuota, `a size from "1MiB" to "16GiB"`); ok {
			r.Quota = quota
		}
	}
	return r
}

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
		} else if size, ok := d.sizeWithin(block.MaxSize, minMaxSize, math.MaxInt64, `a size of at least "1MiB", or "unlimited",`); ok {
			j.MaxSize = size
		}
		d.warnJournal(j, block)
	}
	return j
}
