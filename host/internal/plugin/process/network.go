package process

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/proxy"
)

// Network is the access of a process to the network, through a proxy of the host.
type Network struct {
	// Rules are the destinations that it may reach; nil means that it has no proxy.
	Rules *egress.Rules
	// SecretOf returns a secret of a user, for the credentials of the rules.
	SecretOf SecretFunc
	// Places bound the connections of all processes together.
	Places *egress.Places
	// Quotas count the bytes of users over all processes.
	Quotas *egress.Quotas
	// Owner is whom the process belongs to.
	Owner Owner
	// Opened and Closed are told of its connections; see [egress.Options]. Required with Rules.
	Opened, Closed func(egress.Connection)
}

// Owner is the user, and the session, whose calls alone a process serves. The zero value is the owner
// of a process of everybody.
type Owner struct{ User, Session string }

// serveNetwork starts the proxy of the process, if the sandbox has made a socket for it.
func (p *Process) serveNetwork(ctx context.Context, listener net.Listener) {
	n := &p.opts.Network
	if listener == nil {
		return
	}
	if n.Rules == nil {
		_ = listener.Close() // nobody listens: connections are refused
		return
	}
	p.proxy = egress.New(ctx, egress.Options{
		Listener: listener, Rules: n.Rules, Authority: p.authority, SecretOf: n.SecretOf, Places: n.Places, Quotas: n.Quotas, Opened: n.Opened, Closed: n.Closed,
		CauseOf: func(ticket []byte) egress.Cause { return p.tickets.cause(ticket, n.Owner) },
	})
}

// Connections returns the open connections of the process.
func (p *Process) Connections() []egress.Connection {
	p.mu.Lock()
	proxy := p.proxy
	p.mu.Unlock()
	if proxy == nil {
		return nil
	}
	return proxy.Live()
}

// hasNetwork reports whether the process can reach other machines.
func (p *Process) hasNetwork() bool {
	c := &p.opts.Profile.Confinement
	return c.HasNetwork() && (c.Network != sandbox.NetworkProxy || p.proxy != nil)
}

// proxyURL returns the address of the proxy for the plugin, "" if there is none.
func (p *Process) proxyURL() string {
	if p.proxy == nil {
		return ""
	}
	return "http://" + egress.Address
}

// proxyEnv returns the variables by which programs find the proxy. Programs differ in the case that
// they look at. A process reaches its own loopback addresses directly.
func (p *Process) proxyEnv() ([]string, error) {
	const local = "localhost,127.0.0.1,::1"
	at := "http://" + egress.Address
	env := []string{
		"HTTP_PROXY=" + at, "http_proxy=" + at, "HTTPS_PROXY=" + at, "https_proxy=" + at,
		"ALL_PROXY=" + at, "all_proxy=" + at, "NO_PROXY=" + local, "no_proxy=" + local,
		"NODE_USE_ENV_PROXY=1",
	}
	if n := &p.opts.Network; n.Rules == nil || len(n.Rules.Inject) == 0 {
		return env, nil
	}
	certificates, err := p.trust()
	if err != nil {
		return nil, err
	}
	for _, name := range proxy.CertificateVariables() {
		env = append(env, name+"="+certificates)
	}
	return env, nil
}

// certificatesName begins the name of the file in the state directory with the certificates that a
// process trusts. Each process has its own: an earlier one may still end its calls.
const certificatesName = "proxy-certificates-"

// trust makes the authority of the process, and a file with its certificate and those of the system.
func (p *Process) trust() (path string, err error) {
	if p.authority, err = egress.NewAuthority(); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(p.StateDir()) // an earlier process may have put a link there
	if err != nil {
		return "", fmt.Errorf("write the certificates for the proxy: %w", err)
	}
	defer func() { _ = root.Close() }() // it was only read
	name := certificatesName + rand.Text() + ".pem"
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", fmt.Errorf("write the certificates for the proxy: %w", err)
	}
	p.certificates = name
	_, err = file.Write(slices.Concat(p.authority.PEM(), systemCertificates()))
	if err := errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("write the certificates for the proxy: %w", err)
	}
	return filepath.Join(p.StateDir(), name), nil
}

// removeTrust removes the file that trust has made.
func (p *Process) removeTrust() error {
	if p.certificates == "" {
		return nil
	}
	root, err := os.OpenRoot(p.StateDir())
	if err != nil {
		return err
	}
	return errors.Join(root.Remove(p.certificates), root.Close())
}

// systemCertificates returns the certificates that the system trusts; nil if none are found.
func systemCertificates() []byte {
	for _, path := range []string{
		os.Getenv("SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
	} {
		if all, err := os.ReadFile(path); err == nil { //nolint:gosec // the operator's own variable
			return all
		}
	}
	return nil
}
