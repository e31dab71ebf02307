package daemon

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth/certificate"
	"github.com/toolhost/toolhost/host/internal/config"
)

// readCertificate reads the certificate of a configuration; nil means that it has none.
func readCertificate(cfg *config.Config) (*certificate.Reloader, error) {
	if cfg.TLS == (certificate.Files{}) || cfg.Listen == "" {
		return nil, nil
	}
	return certificate.NewReloader(cfg.TLS, nil)
}

// lookAtCertificate is the time between two checks whether the certificate has changed.
const lookAtCertificate = time.Second

// keepCertificate uses the certificate anew when its files change, and logs when it expires, or
// will soon.
func (d *Daemon) keepCertificate(ctx context.Context) {
	tick := time.NewTicker(lookAtCertificate)
	defer tick.Stop()
	told := d.parts.certificate.Problems() // by the warnings about the configuration
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		d.logCertificate(d.parts.certificate.Refresh())
		problems := d.parts.certificate.Problems()
		for _, problem := range problems {
			if !slices.Contains(told, problem) && problem != certificate.Unusable {
				d.opts.Logger.Warn(problem)
			}
		}
		told = problems
	}
}

// logCertificate logs what came of reading the files of the certificate.
func (d *Daemon) logCertificate(renewed bool, err error) {
	switch {
	case err != nil:
		d.opts.Logger.Warn("the files of the TLS certificate cannot be used; the certificate before stays in use", "error", err)
	case renewed:
		d.opts.Logger.Info("the TLS certificate was replaced", "expires", d.parts.certificate.Certificate().Expires())
	}
}

// isName reports whether clients from elsewhere may call this host by a name: one of the
// certificate, or of the configuration.
func (d *Daemon) isName(name string) bool {
	return d.parts.certificate != nil && d.parts.certificate.Certificate().Covers(name) ||
		slices.Contains(d.config.Load().Hosts, name)
}

// URL returns where clients reach the host over HTTP, or "" if they do not.
func (d *Daemon) URL() string {
	address := d.address.Load()
	if address == nil {
		return ""
	}
	var current *certificate.Certificate
	if d.parts.certificate != nil {
		current = d.parts.certificate.Certificate()
	}
	return urlOf(d.config.Load(), current, *address)
}

// ConfiguredURL returns where clients reach a host with a configuration over HTTP. It may be
// elsewhere while the host runs: see [Daemon.URL].
func ConfiguredURL(cfg *config.Config) (string, error) {
	var current *certificate.Certificate
	if cfg.TLS != (certificate.Files{}) {
		var err error
		if current, err = certificate.Read(cfg.TLS); err != nil {
			return "", err
		}
	}
	return urlOf(cfg, current, cfg.Listen), nil
}

// urlOf returns the URL of an address. With a certificate, that has a name which it covers, if
// there is one.
func urlOf(cfg *config.Config, current *certificate.Certificate, address string) string {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return "http://" + address
	}
	all := at.Addr().IsUnspecified()
	name := at.Addr().Unmap().String()
	if all {
		name = "127.0.0.1"
	}
	scheme := "http://"
	switch {
	case current != nil:
		scheme = "https://"
		if !current.Covers(name) {
			name = cmp.Or(current.Name(), name)
		}
	case all && len(cfg.Hosts) > 0:
		name = cfg.Hosts[0]
	}
	return scheme + net.JoinHostPort(name, strconv.Itoa(int(at.Port())))
}
