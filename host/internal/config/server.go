package config

import (
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2"
)

// defaultListen is the default address for HTTP.
const defaultListen = "127.0.0.1:7780"

// The default and the longest time for running calls to finish when the host stops.
const (
	defaultGrace = 10 * time.Second
	maxGrace     = 10 * time.Minute
)

// server reads the server block.
func (d *decoder) server(blocks []serverBlock) (listen string, grace time.Duration) {
	listen, grace = defaultListen, defaultGrace
	for _, block := range blocks {
		if address, ok := d.loopback(block.Listen); ok {
			listen = address
		}
		if t, ok := d.durationWithin(block.Grace, 0, maxGrace, `a duration from "0s" to "10m"`); ok {
			grace = t
		}
	}
	return listen, grace
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
