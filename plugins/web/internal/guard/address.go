package guard

import (
	"net/netip"
	"slices"
)

// never are networks that no option opens: what a machine learns there about
// itself, credentials of clouds above all.
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

// neverIn returns a network that is never contacted and that the given one holds
// or lies in.
func neverIn(network netip.Prefix) (netip.Prefix, bool) {
	i := slices.IndexFunc(never, network.Overlaps)
	if i < 0 {
		return netip.Prefix{}, false
	}
	return never[i], true
}

// translations are networks of IPv6 whose addresses lead to one of IPv4, and where
// in them that stands.
var translations = []struct {
	network netip.Prefix
	at      int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},  // NAT64 of an organisation
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4
	{netip.MustParsePrefix("::/96"), 12},           // IPv4-compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // SIIT
}

// leadsTo returns where an address leads in the end.
func leadsTo(ip netip.Addr) netip.Addr {
	bytes := ip.As16()
	for _, t := range translations {
		if t.network.Contains(ip) && ip != netip.IPv6Loopback() && ip != netip.IPv6Unspecified() {
			return netip.AddrFrom4([4]byte(bytes[t.at : t.at+4]))
		}
	}
	return ip
}

// Address refuses the number of a machine that is not public. An IPv4 address in
// IPv6 form counts as the IPv4 address, and one that is translated counts as both.
func (g *Guard) Address(to netip.AddrPort) error {
	if !to.IsValid() || to.Addr().Zone() != "" {
		return refuse(to.String(), "it is no address of a machine in the internet").malformed()
	}
	if !slices.Contains(g.ports, to.Port()) {
		return g.refusePort(to.String(), to.Port())
	}
	ip := to.Addr().Unmap()
	for _, one := range []netip.Addr{ip, leadsTo(ip)} {
		if err := g.number(one); err != nil {
			return refuse(ip.String(), "%s", err)
		}
	}
	return nil
}

// numberError says what is wrong with the number of a machine.
type numberError string

// Error implements error.
func (e numberError) Error() string { return string(e) }

func (g *Guard) number(ip netip.Addr) error {
	within := func(network netip.Prefix) bool { return network.Contains(ip) }
	switch {
	case slices.ContainsFunc(never, within):
		return numberError("it is an address of the machine or its cloud, not of the internet")
	case slices.Contains(g.deny, ip.String()):
		return numberError("the administrator does not let this address be contacted")
	case slices.ContainsFunc(g.private, within):
		return nil
	case g.public.SafeAddr(ip) != nil:
		return numberError("it is a private or special address, not one of the internet")
	}
	return nil
}

// Named judges the addresses of a host that the administrator has named: any but
// those that are never contacted.
type Named struct{}

// Address refuses the number of a machine that is never contacted.
func (Named) Address(to netip.AddrPort) error {
	ip := to.Addr().Unmap()
	for _, one := range []netip.Addr{ip, leadsTo(ip)} {
		if slices.ContainsFunc(never, func(network netip.Prefix) bool { return network.Contains(one) }) {
			return refuse(ip.String(), "it is an address of the machine or its cloud")
		}
	}
	return nil
}
