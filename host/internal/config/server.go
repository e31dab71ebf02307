package config

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/auth/certificate"
	"github.com/toolhost/toolhost/internal/lazyregexp"
)

// defaultListen is the default address for HTTP.
const defaultListen = "127.0.0.1:7780"

// The default and the longest time for running calls to finish when the host stops.
const (
	defaultGrace = 10 * time.Second
	maxGrace     = 10 * time.Minute
)

// server reads the server block.
func (d *decoder) server(blocks []serverBlock, cfg *Config) {
	cfg.Listen, cfg.Grace, cfg.ToolSearchAbove = defaultListen, defaultGrace, defaultToolSearch
	for _, block := range blocks {
		if t, ok := d.durationWithin(block.Grace, 0, maxGrace, `a duration from "0s" to "10m"`); ok {
			cfg.Grace = t
		}
		cfg.ToolSearchAbove = d.toolSearch(block.ToolSearchAbove, cfg.ToolSearchAbove)
		address, ok := d.address(block.Listen)
		if !ok {
			address = defaultListen
		}
		cfg.Listen = address
		for _, inner := range block.TLS {
			cfg.TLS = d.tls(inner, cfg.Workspace.Top())
		}
		cfg.Hosts = d.hosts(block.Hosts)
		d.exposure(block, address)
	}
}

// address reads an address to listen on, or "". The name localhost becomes an address, so that
// no name is ever looked up, and no address becomes the unspecified one.
func (d *decoder) address(attr *hcl.Attribute) (string, bool) {
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
	switch host {
	case "localhost":
		host = "127.0.0.1"
	case "":
		host = "::" // with IPv4
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		d.mistake(attr.Expr.Range(), "Not an address",
			"Expected an IP address such as 127.0.0.1 or [::1], or localhost, before the port. Other names are not looked up.")
		return "", false
	}
	return netip.AddrPortFrom(address, uint16(number)).String(), true
}

// exposure reports an address that other machines reach without TLS, and arguments that have
// no effect.
func (d *decoder) exposure(block serverBlock, listen string) {
	insecure := d.flag(block.InsecureListen, false)
	if listen == "" {
		for _, inner := range block.TLS {
			d.warn(inner.Range, warnUnused, `tls has no effect, since listen = "" turns HTTP off. Remove one of them.`)
		}
	}
	at, err := netip.ParseAddrPort(listen)
	exposed := err == nil && !at.Addr().Unmap().IsLoopback()
	switch {
	case exposed && len(block.TLS) == 0 && insecure:
		d.warn(block.InsecureListen.NameRange, warnListen,
			"insecure_listen: %s has no TLS, so whoever is between a client and this host reads its token and changes its calls. Add a tls block.", listen)
	case exposed && len(block.TLS) == 0:
		d.mistake(block.Listen.Expr.Range(), "Not a loopback address",
			"Other machines could reach this address and read tokens in transit, since there is no TLS. "+
				"Expected 127.0.0.1, [::1] or localhost. Otherwise add a tls block with cert and key, or insecure_listen = true if the network itself is encrypted.")
	case insecure:
		d.warn(block.InsecureListen.NameRange, warnUnused, "insecure_listen has no effect: the address is a loopback address or has TLS. Remove it.")
	}
}

// tls reads the certificate of the server.
func (d *decoder) tls(block tlsBlock, workspace string) certificate.Files {
	var files certificate.Files
	complete := true
	for _, part := range []struct {
		name string
		attr *hcl.Attribute
		into *string
	}{{"cert", block.Cert, &files.Cert}, {"key", block.Key, &files.Key}} {
		path, ok := d.text(part.attr, "the path of a file in PEM format")
		switch {
		case d.absent(part.attr) || ok && path == "":
			d.mistake(block.Range, "Missing "+part.name, "TLS needs a certificate and its key. Add %s with the path of a file in PEM format.", part.name)
			complete = false
		case !ok:
			complete = false
		case strings.ContainsRune(path, 0):
			d.mistake(part.attr.Expr.Range(), "Invalid path", "A path cannot hold a NUL character.")
			complete = false
		default:
			*part.into = d.src.abs(path)
		}
	}
	if !complete {
		return certificate.Files{}
	}
	if workspace != "" && within(workspace, files.Key) {
		d.mistake(block.Key.Expr.Range(), "Key in the workspace",
			"The key (%s) must not be in the workspace (%s), where tools could read it. Move it, for example beside the configuration.", files.Key, workspace)
		return certificate.Files{}
	}
	cert, err := certificate.Read(files)
	if err != nil {
		d.mistake(block.Range, "Unusable certificate", "%v. Expected a certificate with its chain in cert and its key in key, both in PEM format.", err)
		return certificate.Files{}
	}
	if problem := cert.Problem(time.Now()); problem != "" { // no mistake: the host must still start on the day after
		d.warn(block.Cert.Expr.Range(), warnCertificate, "cert: %s.", problem)
	}
	if mode, open := certificate.OthersCanRead(files.Key); open {
		d.warn(block.Key.Expr.Range(), warnKey, "key: other accounts can open %s (mode %04o), and whoever has the key can pose as this host. Run chmod 600 on it.", files.Key, mode)
	}
	return files
}

// hostName matches a DNS name.
var hostName = lazyregexp.New(`^[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*$`)

// maxHostName is the length of the longest DNS name, in bytes.
const maxHostName = 253

// hosts reads the names that clients may send in the Host header.
func (d *decoder) hosts(attr *hcl.Attribute) (hosts []string) {
	const expected = `a list of names such as ["tools.example.com"]`
	for _, w := range d.words(attr, expected) {
		name := strings.ToLower(w.text)
		address, err := netip.ParseAddr(name)
		switch {
		case err == nil && address.Zone() == "":
			name = address.Unmap().String()
		case len(name) > maxHostName || !hostName().MatchString(name):
			d.mistake(w.expr.Range(), "Not a host name", "Expected a DNS name or an IP address for hosts, without a scheme, a port and wildcards, not %s.", quote(w.expr, w.text))
			continue
		}
		if slices.Contains(hosts, name) {
			d.mistake(w.expr.Range(), "Duplicate host", "%s is already in the list.", quote(w.expr, w.text))
			continue
		}
		hosts = append(hosts, name)
	}
	return hosts
}
