// Package guard decides which servers a program may contact on behalf of an untrusted
// caller. It checks the URL first, and the IP address when it dials.
//
// The second check is the one that counts. The [Dialer] resolves a name once, checks each
// IP address and dials the address, never the name. A name that resolves to another
// address the next time makes no difference.
package guard

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Options lists the servers that an administrator allows.
type Options struct {
	// Ports are the only allowed ports; none means 80, 443, 8080 and 8443.
	Ports []int
	// Private are networks that are allowed although they are not public.
	Private []netip.Prefix
	// Allow are the only allowed domains, including their subdomains; none allows all.
	// Deny are denied domains, including their subdomains; Deny overrides Allow. An IP
	// address in Deny is refused for any host name.
	Allow, Deny []string
}

// Guard checks URLs and IP addresses. Create it with [New]. It is safe for concurrent use.
type Guard struct {
	ports       []uint16
	private     []netip.Prefix
	allow, deny []string
}

// New returns a guard, or an [*OptionError] that names the wrong option.
func New(o Options) (*Guard, error) {
	g := &Guard{}
	ports := o.Ports
	if len(ports) == 0 {
		ports = []int{80, 443, 8080, 8443}
	}
	for _, port := range ports {
		if port < 1 || port > 65535 {
			return nil, &OptionError{Option: "ports", Reason: fmt.Sprintf("%d is not a port, expected 1 to 65535", port)}
		}
		g.ports = append(g.ports, uint16(port))
	}
	for _, network := range o.Private {
		if !network.IsValid() {
			return nil, &OptionError{Option: "private", Reason: "a network is not valid"}
		}
		if network.Addr().Is4In6() {
			return nil, &OptionError{Option: "private", Reason: fmt.Sprintf("%s is an IPv4 network in IPv6 form, expected it in IPv4 form", network)}
		}
		if never, ok := NeverIn(network); ok {
			return nil, &OptionError{Option: "private", Reason: fmt.Sprintf("%s overlaps with %s, which is never allowed", network, never)}
		}
		g.private = append(g.private, network.Masked())
	}
	var err error
	if g.allow, err = domains("allow", o.Allow); err != nil {
		return nil, err
	}
	if g.deny, err = domains("deny", o.Deny); err != nil {
		return nil, err
	}
	return g, nil
}

// OptionError reports an invalid option.
type OptionError struct {
	// Option is "ports", "private", "allow" or "deny".
	Option string
	// Reason describes the mistake and what was expected.
	Reason string
}

// Error implements error.
func (e *OptionError) Error() string { return e.Option + ": " + e.Reason }

// domains parses a list of domains.
func domains(option string, list []string) ([]string, error) {
	var all []string
	for _, text := range list {
		host, err := listed(strings.TrimPrefix(text, "*."))
		if err != nil {
			return nil, &OptionError{Option: option, Reason: fmt.Sprintf("%q is not a domain: %v", text, err)}
		}
		all = append(all, host)
	}
	return all, nil
}

// listed returns a host of a list in the form that [Guard.Check] gives to hosts.
func listed(text string) (string, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return ip.Unmap().String(), nil
	}
	return HostName(text)
}

// Hosts is a list of hosts. Unlike a domain, "example.com" is only this host;
// "*.example.com" means its subdomains.
type Hosts []string

// NewHosts parses a list of hosts.
func NewHosts(list []string) (Hosts, error) {
	var all Hosts
	for _, text := range list {
		name, below := strings.CutPrefix(text, "*.")
		host, err := listed(name)
		if err != nil {
			return nil, fmt.Errorf("%q is not a host: %w", text, err)
		}
		if below {
			host = "." + host
		}
		all = append(all, host)
	}
	return all, nil
}

// Have reports whether the list contains a host, in the form that [Guard.Check] gives it.
func (h Hosts) Have(host string) bool {
	return slices.ContainsFunc(h, func(one string) bool {
		return host == one || strings.HasPrefix(one, ".") && strings.HasSuffix(host, one)
	})
}

// RefusalError reports why an address may not be contacted.
type RefusalError struct {
	// Address is the URL, host or IP address, as an error shows it.
	Address string
	// Reason is why it is refused.
	Reason string
	// Hint is what to do instead; it may be empty.
	Hint string
	// Malformed reports that the address is invalid, not just denied.
	Malformed bool
}

// Error implements error.
func (r *RefusalError) Error() string { return fmt.Sprintf("%s: %s", r.Address, r.Reason) }

func refuse(address, format string, args ...any) *RefusalError {
	return &RefusalError{Address: address, Reason: fmt.Sprintf(format, args...)}
}

func (r *RefusalError) withHint(format string, args ...any) *RefusalError {
	r.Hint = fmt.Sprintf(format, args...)
	return r
}

func (r *RefusalError) malformed() *RefusalError {
	r.Malformed = true
	return r
}

// Domain refuses a host that the lists of domains deny.
func (g *Guard) Domain(host string) error {
	if slices.ContainsFunc(g.deny, func(domain string) bool { return within(host, domain) }) {
		return refuse(host, "the administrator denies this domain")
	}
	if len(g.allow) > 0 && !slices.ContainsFunc(g.allow, func(domain string) bool { return within(host, domain) }) {
		return refuse(host, "it is not in a domain that the administrator allows").
			withHint("allowed domains: %s", strings.Join(g.allow, ", "))
	}
	return nil
}

// within reports whether host is the domain or one of its subdomains.
func within(host, domain string) bool {
	return host == domain || strings.HasSuffix(host, "."+domain)
}
