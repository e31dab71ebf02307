package supervisor

import (
	"cmp"
	"slices"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/host/internal/plugin/process"
)

// network returns the network of the processes of the pool.
func (p *pool) network() process.Network {
	told := func(open bool) func(egress.Connection) {
		return func(c egress.Connection) {
			c.Plugin, c.Error = p.plugin.Name, p.redact(c.Error)
			if p.s.opts.Connected != nil {
				p.s.opts.Connected(c, open)
			}
		}
	}
	return process.Network{
		Rules: p.plugin.Network, SecretOf: p.userSecret, Places: p.s.places, Quotas: p.s.quotas, Owner: process.Owner{User: p.of.user, Session: p.of.session}, Opened: told(true), Closed: told(false),
	}
}

// Connections returns the open connections of all processes, the latest first.
func (s *Supervisor) Connections() []egress.Connection {
	var all []egress.Connection
	for _, m := range s.everyManager() {
		for _, i := range m.running() {
			for _, c := range i.proc.Connections() {
				c.Plugin = m.plugin.Name
				all = append(all, c)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b egress.Connection) int {
		return cmp.Or(b.Opened.Compare(a.Opened), cmp.Compare(a.Host, b.Host))
	})
	return all
}

// running returns the processes of all pools.
func (m *manager) running() (all []*instance) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pools() {
		for _, i := range p.instances {
			all = append(all, i)
		}
	}
	return all
}
