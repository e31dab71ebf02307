package egress

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/sdk/guard"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Rules say which destinations the processes of a plugin may reach. The zero value allows none.
type Rules struct {
	// Allow are the destinations that need no question. Deny overrides Allow, and every answer.
	Allow, Deny []Destination
	// Ask lets a person decide about a destination in neither list.
	Ask bool
	// Private treats private addresses, and names of private networks, as public ones. Without it
	// only those are reached that are in a network in Allow. Link-local, metadata and multicast
	// addresses are never reached.
	Private bool
	// MaxBytes bounds the bytes of one connection, in both directions together; 0 means no bound.
	MaxBytes tool.ByteSize
	// Inject are the credentials that the proxy adds to requests.
	Inject []Credential
}

// Verdict is what the rules say about a destination.
type Verdict string

// The verdicts.
const (
	Allow Verdict = "allow"
	Ask   Verdict = "ask"
	Deny  Verdict = "deny"
)

// Decision is the verdict about a destination, and its reason.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	// Rule is what decided: an entry of a list, or a setting.
	Rule string `json:"rule"`
	// Reason is why the destination is denied, for a model.
	Reason string `json:"reason,omitempty"`

	// raw is set if the tunnel may carry any protocol.
	raw bool
}

// Decide decides about a destination. It resolves no name: a question of the resolver already
// tells somebody about the name.
func (r *Rules) Decide(to Target) Decision {
	if d, ok := find(r.Deny, to, true, true); ok {
		return Decision{Verdict: Deny, Rule: "deny " + d.rule(), Reason: "the configuration denies it"}
	}
	if to.ip.IsValid() {
		if err := guard.Reachable(to.ip); err != nil {
			return Decision{Verdict: Deny, Rule: "link-local, metadata and multicast addresses", Reason: err.Error()}
		}
	}
	if d, ok := find(r.Allow, to, false, r.Private); ok {
		return Decision{Verdict: Allow, Rule: "allow " + d.rule(), raw: d.port != 0}
	}
	switch {
	case !r.Private && to.ip.IsValid() && guard.Public(to.ip) != nil:
		return Decision{Verdict: Deny, Rule: "private addresses", Reason: "it is a private or special address, and no entry of allow contains it"}
	case !r.Private && !to.ip.IsValid() && guard.Internal(to.Host):
		return Decision{Verdict: Deny, Rule: "names of private networks", Reason: "it is a name of a private network, and not in the list of allowed hosts"}
	case r.Ask:
		return Decision{Verdict: Ask, Rule: "ask", raw: !slices.Contains(webPorts, to.Port)}
	}
	return Decision{Verdict: Deny, Rule: "not in allow", Reason: "it is not in the list of allowed hosts"}
}

// judge decides about the addresses of one destination. It implements [guard.Judge].
type judge struct {
	rules *Rules
	port  uint16
}

// Address implements [guard.Judge].
func (j judge) Address(to netip.AddrPort) error {
	ip := to.Addr().Unmap()
	refused := func(reason string) error { return &guard.RefusalError{Address: ip.String(), Reason: reason} }
	if err := guard.Reachable(ip); err != nil {
		return refused(err.Error())
	}
	target := Target{Host: ip.String(), Port: j.port, ip: ip}
	if _, ok := find(j.rules.Deny, target, true, true); ok {
		return refused("the configuration denies this address")
	}
	err := guard.Public(ip)
	if err == nil || j.rules.Private {
		return nil
	}
	// "*" stands for public hosts only.
	if d, ok := find(j.rules.Allow, target, false, false); ok && !d.any {
		return nil
	}
	return refused(err.Error())
}

// find returns the first destination of a list that contains the target; see [Destination.contains].
func find(list []Destination, to Target, anyPort, private bool) (*Destination, bool) {
	for i := range list {
		if list[i].contains(to, anyPort, private) {
			return &list[i], true
		}
	}
	return nil, false
}

// webPorts are the ports of a destination without a port.
var webPorts = []uint16{80, 443}

// Destination is an entry of a list: "api.example.com", "*.example.org:443", "10.1.2.0/24:5432", an
// IP address, or "*" for all public hosts. Without a port it means 80 and 443 in a list of allowed
// destinations, and every port in a list of denied ones.
type Destination struct {
	// From is the expression that the entry comes from, such as `registry("npm")`; "" if it was written.
	From string

	text    string
	host    string       // in lower case ASCII; "" for a network and for "*"
	below   bool         // the hosts below host, not host itself
	any     bool         // all hosts
	network netip.Prefix // of an address or a network
	port    uint16       // 0 means none
}

// String returns the entry as written.
func (d Destination) String() string { return d.text }

// rule names the entry in a decision.
func (d Destination) rule() string {
	if d.From != "" {
		return fmt.Sprintf("%q, of %s", d.text, d.From)
	}
	return strconv.Quote(d.text)
}

// MarshalText implements [encoding.TextMarshaler].
func (d Destination) MarshalText() ([]byte, error) { return []byte(d.text), nil }

// contains reports whether a target is one of the destination's. Without a port, it has all ports
// with anyPort, and otherwise those of the web; "*" includes private hosts only with private.
func (d *Destination) contains(to Target, anyPort, private bool) bool {
	switch {
	case d.port != 0 && d.port != to.Port:
		return false
	case d.port == 0 && !anyPort && !slices.Contains(webPorts, to.Port):
		return false
	case d.any:
		return private || to.ip.IsValid() && guard.Public(to.ip) == nil || !to.ip.IsValid() && !guard.Internal(to.Host)
	case d.network.IsValid():
		return to.ip.IsValid() && d.network.Contains(to.ip)
	case d.below:
		return strings.HasSuffix(to.Host, "."+d.host)
	}
	return to.Host == d.host
}

// ParseDestination parses an entry of a list. The error says what is wrong and what was expected.
func ParseDestination(text string) (Destination, error) {
	d := Destination{text: text}
	if scheme, _, ok := strings.Cut(text, "://"); ok {
		return Destination{}, fmt.Errorf("%q is a URL; write only the host, and the port if it is unusual, without %s://", text, scheme)
	}
	host, port, err := splitPort(text)
	if err != nil {
		return Destination{}, err
	}
	d.port = port
	if host == "*" {
		d.any = true
		return d, nil
	}
	if network, ok := parseNetwork(host); ok {
		if never, ok := guard.NeverIn(network); ok {
			return Destination{}, fmt.Errorf("%s overlaps with %s, which is never reached: it holds link-local, metadata or multicast addresses", network, never)
		}
		d.network = network
		return d, nil
	}
	name, below := strings.CutPrefix(host, "*.")
	if d.host, err = guard.HostName(name); err != nil {
		return Destination{}, fmt.Errorf("%q is not a host: %w; expected a host such as \"api.example.com\", \"*.example.com\", an address, a network, or \"*\"", host, err)
	}
	d.below = below
	return d, nil
}

// parseNetwork parses an address or a network.
func parseNetwork(text string) (netip.Prefix, bool) {
	if network, err := netip.ParsePrefix(text); err == nil && !network.Addr().Is4In6() {
		return network.Masked(), true
	}
	ip, err := netip.ParseAddr(text)
	if err != nil || ip.Zone() != "" {
		return netip.Prefix{}, false
	}
	ip = ip.Unmap()
	return netip.PrefixFrom(ip, ip.BitLen()), true
}

// Credential is a header that the proxy adds to the requests for a host. The process never has the
// secret in it.
type Credential struct {
	Host Destination
	// Header is the name, and Prefix comes before the secret, such as "Bearer ".
	Header, Prefix string
	// Secret is the name of the secret, and Value its value unless each user sets one (PerUser).
	Secret, Value string
	PerUser       bool
}

// UserSecrets returns the names of the secrets in Inject that each user sets. nil has none.
func (r *Rules) UserSecrets() (names []string) {
	if r == nil {
		return nil
	}
	for _, c := range r.Inject {
		if c.PerUser && !slices.Contains(names, c.Secret) {
			names = append(names, c.Secret)
		}
	}
	return names
}

// credentials returns the credentials for a destination.
func (r *Rules) credentials(to Target) []Credential {
	return slices.DeleteFunc(slices.Clone(r.Inject), func(c Credential) bool { return !c.Host.contains(to, false, false) })
}
