package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/net/http/httpguts"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/sdk/tool"
)

// network reads a plugin's access to the network.
func (d *decoder) network(c *confinement, block networkBlock) {
	if mode, ok := d.choice(block.Mode, "none", "proxy", "host"); ok {
		modes := map[string]sandbox.Network{"none": sandbox.NetworkNone, "proxy": sandbox.NetworkProxy, "host": sandbox.NetworkHost}
		c.access.Network, c.said.network = modes[mode], block.Mode
	}
	for _, attr := range []*hcl.Attribute{block.Allow, block.Deny, block.Ask, block.Private, block.MaxBytes} {
		if attr != nil && c.said.destinations == nil {
			c.said.destinations = attr
		}
	}
	if block.Allow != nil {
		c.network.Allow = d.destinations(block.Allow)
	}
	if block.Deny != nil {
		c.network.Deny = d.destinations(block.Deny)
	}
	c.network.Ask = d.flag(block.Ask, c.network.Ask)
	c.network.Private = d.flag(block.Private, c.network.Private)
	if most, ok := d.sizeWithin(block.MaxBytes, tool.KiB, 1<<50, sizeExample+" of at least 1KiB"); ok {
		c.network.MaxBytes = most
	}
	if len(block.Inject) > 0 {
		c.network.Inject, c.said.userSecrets = nil, nil
	}
	for _, inject := range block.Inject {
		d.inject(c, inject)
	}
}

// destinations reads a list of destinations.
func (d *decoder) destinations(attr *hcl.Attribute) (all []egress.Destination) {
	for _, w := range d.flatWords(attr, `a list of hosts such as ["api.example.com", "*.example.org:443", "10.1.2.0/24:5432"], or ["*"] for all public hosts`) {
		to, err := egress.ParseDestination(w.text)
		to.From = registryCall(w.expr)
		switch {
		case err != nil && diag.IsLiteral(w.expr):
			d.mistake(w.expr.Range(), "Not a destination", "%s: %v.", attr.Name, err)
		case err != nil:
			d.mistake(w.expr.Range(), "Not a destination", `%s: the value of this expression is not a host such as "api.example.com", an address or a network, with or without a port.`, attr.Name)
		case slices.ContainsFunc(all, func(other egress.Destination) bool { return other.String() == to.String() }):
			d.mistake(w.expr.Range(), "Duplicate destination", "%s is already in the list.", quote(w.expr, w.text))
		default:
			all = append(all, to)
		}
	}
	return all
}

// inject reads a credential that the proxy adds to requests.
func (d *decoder) inject(c *confinement, block injectBlock) {
	host, err := egress.ParseDestination(block.Host)
	if err != nil || host.String() == "*" {
		d.mistake(block.HostRange, "Not a host", "inject: expected the host that gets the secret, such as \"api.example.com\", not %q.", block.Host)
		return
	}
	credential := egress.Credential{Host: host, Header: "Authorization"}
	if header, ok := d.text(block.Header, "the name of a header"); ok {
		if !httpguts.ValidHeaderFieldName(header) {
			d.mistake(block.Header.Expr.Range(), "Not a header", "header: %s cannot be the name of a header.", quote(block.Header.Expr, header))
		}
		credential.Header = header
	}
	if prefix, ok := d.text(block.Prefix, "a text before the secret"); ok {
		if !httpguts.ValidHeaderFieldValue(prefix) {
			d.mistake(block.Prefix.Expr.Range(), "Not a header", "prefix: it contains characters that no header can have, such as a line break.")
		}
		credential.Prefix = prefix
	}
	name, ok := d.text(block.Secret, "the name of a secret block")
	if !ok {
		if block.Secret == nil {
			d.mistake(block.Range, "Missing secret", "inject %q needs a secret: add secret = \"NAME\", and a secret block of this name.", block.Host)
		}
		return
	}
	source, known := d.secretSources[name]
	if !known {
		d.mistake(block.Secret.Expr.Range(), "Unknown secret", "There is no secret block %s.%s", quote(block.Secret.Expr, name),
			diag.DidYouMean(name, slices.Sorted(maps.Keys(d.secretSources))))
		return
	}
	d.secretsUsed = append(d.secretsUsed, name)
	if !source.perUser && !isHeaderValue(source.value) {
		d.mistake(block.Secret.Expr.Range(), "Not a header", "secret: the value of %s contains characters that no header can have, such as a line break.", quote(block.Secret.Expr, name))
	}
	if source.perUser {
		c.said.userSecrets = append(c.said.userSecrets, word{name, block.Secret.Expr})
	}
	credential.Secret, credential.Value, credential.PerUser = name, source.value, source.perUser
	c.network.Inject = append(c.network.Inject, credential)
}

// isHeaderValue reports whether a header can have a secret. The proxy removes white space around it.
func isHeaderValue(secret string) bool {
	return httpguts.ValidHeaderFieldValue(strings.TrimSpace(secret))
}

// checkNetwork reports rules about destinations that have no effect.
func (d *decoder) checkNetwork(c *confinement, block pluginBlock) {
	at := c.said.destinations
	if c.access.Network == sandbox.NetworkProxy || at == nil && len(c.network.Inject) == 0 {
		return
	}
	where := block.NameRange
	if at != nil {
		where = at.NameRange
	}
	d.mistake(where, "Useless network rules", `Only mode = "proxy" looks at destinations. Write mode = "proxy" in the network block, or remove its other lines.`)
}

// checkUserSecrets reports credentials of users in a process that serves all of them.
func (d *decoder) checkUserSecrets(c *confinement, p supervisor.Plugin) {
	if p.Network == nil || p.Scope != supervisor.Shared {
		return
	}
	for _, w := range c.said.userSecrets {
		d.mistake(w.expr.Range(), "Secret of one user", "Each user sets the secret %s, but one process of plugin %q serves all users. Write isolation_scope = %q in the plugin's block.",
			quote(w.expr, w.text), p.Name, supervisor.PerUser)
	}
}

// proxy returns the rules of the proxy; nil without one.
func (c *confinement) proxy() *egress.Rules {
	if c.access.Network != sandbox.NetworkProxy {
		return nil
	}
	rules := c.network
	return &rules
}
