// Package guard decides which addresses a program may contact on behalf of
// somebody whom it does not trust: by the text of a URL, and again by the
// number of the machine when it is dialled.
//
// What counts is the second: a name is looked up once, each of its numbers is
// judged, and a number is dialled, never the name. So a name that leads
// elsewhere the next time changes nothing.
package guard

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"code.dny.dev/ssrf"
)

// Options are what an administrator allows.
type Options struct {
	// Ports are the only ones that may be contacted; none means 80, 443, 8080 and
	// 8443.
	Ports []int
	// Private are networks that may be contacted although they are not public.
	Private []netip.Prefix
	// Allow are the only domains that may be contacted, each with those below it;
	// none means any. Deny are domains that may not, whatever Allow says; a number
	// among them may not be dialled, whatever name leads there.
	Allow, Deny []string
}

// Guard judges addresses. Make it with [New]; it may be used by several
// goroutines at once.
type Guard struct {
	ports       []uint16
	private     []netip.Prefix
	allow, deny []string
	public      *ssrf.Guardian
}

// New returns a guard, or an [*OptionError] that says which option is wrong.
func New(o Options) (*Guard, error) {
	g := &Guard{public: ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork())}
	ports := o.Ports
	if len(ports) == 0 {
		ports = []int{80, 443, 8080, 8443}
	}
	for _, port := range ports {
		if port < 1 || port > 65535 {
			return nil, &OptionError{Option: "ports", Reason: fmt.Sprintf("%d is no port: expected 1 to 65535", port)}
		}
		g.ports = append(g.ports, uint16(port))
	}
	for _, network := range o.Private {
		if !network.IsValid() {
			return nil, &OptionError{Option: "private", Reason: "a network is not valid"}
		}
		if network.Addr().Is4In6() {
			return nil, &OptionError{Option: "private", Reason: fmt.Sprintf("%s holds no address: write it as a network of IPv4", network)}
		}
		if never, ok := neverIn(network); ok {
			return nil, &OptionError{Option: "private", Reason: fmt.Sprintf("%s covers %s, which is never contacted", network, never)}
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

// OptionError is an option that a guard cannot be made with.
type OptionError struct {
	// Option is "ports", "private", "allow" or "deny".
	Option string
	// Reason says what is wrong and what was expected.
	Reason string
}

// Error implements error.
func (e *OptionError) Error() string { return e.Option + ": " + e.Reason }

// domains reads a list of domains.
func domains(option string, list []string) ([]string, error) {
	var all []string
	for _, text := range list {
		host, err := listed(strings.TrimPrefix(text, "*."))
		if err != nil {
			return nil, &OptionError{Option: option, Reason: fmt.Sprintf("%q is no domain: %v", text, err)}
		}
		all = append(all, host)
	}
	return all, nil
}

// listed returns a host of a list as addresses have it, see [Guard.Check].
func listed(text string) (string, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return ip.Unmap().String(), nil
	}
	return hostName(text)
}

// Hosts are single hosts, unlike domains: "example.com" is that host, and
// "*.example.com" are those below it.
type Hosts []string

// NewHosts reads a list of hosts.
func NewHosts(list []string) (Hosts, error) {
	var all Hosts
	for _, text := range list {
		name, below := strings.CutPrefix(text, "*.")
		host, err := listed(name)
		if err != nil {
			return nil, fmt.Errorf("%q is no host: %w", text, err)
		}
		if below {
			host = "." + host
		}
		all = append(all, host)
	}
	return all, nil
}

// Have reports whether a host is among them. It is one of an address that was
// judged.
func (h Hosts) Have(host string) bool {
	return slices.ContainsFunc(h, func(one string) bool {
		return host == one || strings.HasPrefix(one, ".") && strings.HasSuffix(host, one)
	})
}

// RefusalError says why an address may not be contacted.
type RefusalError struct {
	// Address is what was refused, for a person to read.
	Address string
	// Reason says why.
	Reason string
	// Hint says what to do instead; it may be empty.
	Hint string
	// Malformed says that it is no address that can be contacted at all.
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

// Domain refuses hosts that the lists of domains do not let be contacted.
func (g *Guard) Domain(host string) error {
	if slices.ContainsFunc(g.deny, func(domain string) bool { return within(host, domain) }) {
		return refuse(host, "the administrator does not let this domain be contacted")
	}
	if len(g.allow) > 0 && !slices.ContainsFunc(g.allow, func(domain string) bool { return within(host, domain) }) {
		return refuse(host, "it is in none of the domains that the administrator lets be contacted").
			withHint("these are allowed: %s", strings.Join(g.allow, ", "))
	}
	return nil
}

// within reports whether host is the domain or below it.
func within(host, domain string) bool {
	return host == domain || strings.HasSuffix(host, "."+domain)
}
