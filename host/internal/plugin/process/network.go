package process

import (
	"net"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
)

// Network is the access of a process to the network, through a proxy of the host.
type Network struct {
	// Rules are the destinations that it may reach; nil means that it has no proxy.
	Rules *egress.Rules
	// Owner is whom the process belongs to.
	Owner Owner
	// Opened and Closed are told of its connections; see [egress.Options]. Required with Rules.
	Opened, Closed func(egress.Connection)
}

// Owner is the user, and the session, whose calls alone a process serves. The zero value is the owner
// of a process of everybody.
type Owner struct{ User, Session string }

// serveNetwork starts the proxy of the process, if the sandbox has made a socket for it.
func (p *Process) serveNetwork(listener net.Listener) {
	n := &p.opts.Network
	if listener == nil {
		return
	}
	if n.Rules == nil {
		_ = listener.Close() // nobody listens: connections are refused
		return
	}
	p.proxy = egress.New(egress.Options{
		Listener: listener, Rules: n.Rules, Opened: n.Opened, Closed: n.Closed,
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

// proxyURL returns the address of the proxy for the plugin, "" if there is none.
func (p *Process) proxyURL() string {
	if p.proxy == nil {
		return ""
	}
	return "http://" + egress.Address
}

// proxyEnv returns the variables by which programs find the proxy. Programs differ in the case that
// they look at. A process reaches its own loopback addresses directly.
func proxyEnv() []string {
	const local = "localhost,127.0.0.1,::1"
	proxy := "http://" + egress.Address
	return []string{
		"HTTP_PROXY=" + proxy, "http_proxy=" + proxy, "HTTPS_PROXY=" + proxy, "https_proxy=" + proxy,
		"ALL_PROXY=" + proxy, "all_proxy=" + proxy, "NO_PROXY=" + local, "no_proxy=" + local,
		"NODE_USE_ENV_PROXY=1",
	}
}
