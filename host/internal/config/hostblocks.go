package config

import (
	"math"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/sdk/tool"
)

// defaultListen is the default address for HTTP.
const defaultListen = "127.0.0.1:7780"

// The default and the longest time for running calls to finish when the host stops.
const (
	defaultGrace = 10 * time.Second
	maxGrace     = 10 * time.Minute
)

// server reads the server block.
func (d *decoder) server(blocks []serverBlock) (listen string, grace time.Duration, toolSearch int) {
	listen, grace, toolSearch = defaultListen, defaultGrace, defaultToolSearch
	for _, block := range blocks {
		if address, ok := d.loopback(block.Listen); ok {
			listen = address
		}
		if t, ok := d.durationWithin(block.Grace, 0, maxGrace, `a duration from "0s" to "10m"`); ok {
			grace = t
		}
		toolSearch = d.toolSearch(block.ToolSearchAbove, toolSearch)
	}
	return listen, grace, toolSearch
}

// loopback reads a loopback address, or "". The name localhost becomes an address, so
// that no name is ever looked up.
func (d *decoder) loopback(attr *hcl.Attribute) (string, bool) {
	const expected = `an address and a port such as "127.0.0.1:7780", or "" (no HTTP),`
	s, ok := d.text(attr, expected)
	if !ok || s == "" {
		return "", ok
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		d.mistake(attr.Expr.Range(), "Not an address", "Expected %s for %s, not %s.", expected, attr.Name, quote(attr.Expr, s))
		return "", false
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		d.mistake(attr.Expr.Range(), "Not a port", "Expected a port from 0 to 65535 after the colon (0: any free port), not %s.", quote(attr.Expr, port))
		return "", false
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	address, err := netip.ParseAddr(host)
	switch {
	case host != "" && err != nil:
		d.mistake(attr.Expr.Range(), "Not an address",
			"Expected an IP address such as 127.0.0.1 or [::1], or localhost, before the port. Other names are not looked up.")
		return "", false
	case !address.Unmap().IsLoopback():
		d.mistake(attr.Expr.Range(), "Not a loopback address",
			"Other machines could reach this address and read tokens in transit, since this version has no TLS. Expected 127.0.0.1, [::1] or localhost.")
		return "", false
	}
	return netip.AddrPortFrom(address, uint16(number)).String(), true
}

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
