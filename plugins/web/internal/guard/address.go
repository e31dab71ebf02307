package guard

import (
	"net/netip"
	"slices"
)

// never lists the networks that no option opens. Machines get information about
// themselves there, such as the credentials of a cloud instance.
var never = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fd00:ec2::/32"), // Amazon
	netip.MustParsePrefix("fd00:c1::/32"),  // Oracle
	netip.MustParsePrefix("fd00:42::/32"),  // Scaleway
	netip.MustParsePrefix("fd20:ce::/32"),  // Google
	netip.MustParsePrefix("192.0.0.192/32"),
	netip.MustParsePrefix("100.100.100.200/32"),
	netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("224.0.0.0/4"),
	netip.MustParsePrefix("ff00::/8"),
}

// neverIn returns a network of never that overlaps with the given one.
func neverIn(network netip.Prefix) (netip.Prefix, bool) {
	i := slices.IndexFunc(never, network.Overlaps)
	if i < 0 {
		return netip.Prefix{}, false
	}
	return never[i], true
}

// translations lists the IPv6 networks whose addresses contain an IPv4 address, and its
// first byte in them.
var translations = []struct {
	network netip.Prefix
	at      int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},  // local-use NAT64
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4
	{netip.MustParsePrefix("::/96"), 12},           // IPv4-compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // SIIT
}

// leadsTo returns the IPv4 address in a translated address, or ip itself.
func leadsTo(ip netip.Addr) netip.Addr {
	bytes := ip.As16()
	for _, t := range translations {
		if t.network.Contains(ip) && ip != netip.IPv6Loopback() && ip != netip.IPv6Unspecified() {
			return netip.AddrFrom4([4]byte(bytes[t.at : t.at+4]))
		}
	}
	return ip
}

// Address refuses an IP address that is not public, and a port that is not allowed. An
// IPv4-mapped IPv6 address counts as the IPv4 address. A translated address must be
// allowed in both forms.
func (g *Guard) Address(to netip.AddrPort) error {
	if !to.IsValid() || to.Addr().Zone() != "" {
		return refuse(to.String(), "it is not an internet address").malformed()
	}
	if !slices.Contains(g.ports, to.Port()) {
		return g.refusePort(to.String(), to.Port())
	}
	ip := to.Addr().Unmap()
	for _, one := range []netip.Addr{ip, leadsTo(ip)} {
		if err := g.checkIP(one); err != nil {
			return refuse(ip.String(), "%s", err)
		}
	}
	return nil
}

// ipError reports why an IP address is refused.
type ipError string

// Error implements error.
func (e ipError) Error() string { return string(e) }

func (g *Guard) checkIP(ip netip.Addr) error {
	within := func(network netip.Prefix) bool { return network.Contains(ip) }
	switch {
	case slices.ContainsFunc(never, within):
		return ipError("it is a link-local, metadata or multicast address, which is never allowed")
	case slices.Contains(g.deny, ip.String()):
		return ipError("the administrator denies this address")
	case slices.ContainsFunc(g.private, within):
		return nil
	case g.public.SafeAddr(ip) != nil:
		return ipError("it is a private or special address, not a public one")
	}
	return nil
}

// Named is a [Judge] for a host that the administrator chose. It allows all addresses
// except those that no option opens.
type Named struct{}

// Address refuses an address that no option opens.
func (Named) Address(to netip.AddrPort) error {
	ip := to.Addr().Unmap()
	for _, one := range []netip.Addr{ip, leadsTo(ip)} {
		if slices.ContainsFunc(never, func(network netip.Prefix) bool { return network.Contains(one) }) {
			return refuse(ip.String(), "it is a link-local, metadata or multicast address, which is never allowed")
		}
	}
	return nil
}
