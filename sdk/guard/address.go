package guard

import (
	"net/netip"
	"slices"
	"sync"

	"code.dny.dev/ssrf"
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

// NeverIn returns a network that no option opens and that overlaps with the given one.
func NeverIn(network netip.Prefix) (netip.Prefix, bool) {
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
	if err := each(to.Addr(), g.checkIP); err != nil {
		return refuse(to.Addr().Unmap().String(), "%s", err)
	}
	return nil
}

// Public refuses an IP address that is not public, in any of its forms; see [Guard.Address].
func Public(ip netip.Addr) error { return each(ip, checkPublic) }

// Reachable refuses an IP address that no option opens, in any of its forms: link-local,
// metadata and multicast addresses.
func Reachable(ip netip.Addr) error { return each(ip, checkReachable) }

// each applies check to the forms of an IP address.
func each(ip netip.Addr, check func(netip.Addr) error) error {
	ip = ip.Unmap()
	if err := check(ip); err != nil {
		return err
	}
	return check(leadsTo(ip))
}

func checkReachable(ip netip.Addr) error {
	if slices.ContainsFunc(never, func(network netip.Prefix) bool { return network.Contains(ip) }) {
		return ipError("it is a link-local, metadata or multicast address, which is never allowed")
	}
	return nil
}

func checkPublic(ip netip.Addr) error {
	if err := checkReachable(ip); err != nil {
		return err
	}
	if public().SafeAddr(ip) != nil {
		return ipError("it is a private or special address, not a public one")
	}
	return nil
}

// public knows the special networks of the IANA registries.
var public = sync.OnceValue(func() *ssrf.Guardian { return ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork()) })

// ipError reports why an IP address is refused.
type ipError string

// Error implements error.
func (e ipError) Error() string { return string(e) }

func (g *Guard) checkIP(ip netip.Addr) error {
	switch err := checkReachable(ip); {
	case err != nil:
		return err
	case slices.Contains(g.deny, ip.String()):
		return ipError("the administrator denies this address")
	case slices.ContainsFunc(g.private, func(network netip.Prefix) bool { return network.Contains(ip) }):
		return nil
	}
	return checkPublic(ip)
}

// Named is a [Judge] for a host that the administrator chose. It allows all addresses
// except those that no option opens.
type Named struct{}

// Address refuses an address that no option opens.
func (Named) Address(to netip.AddrPort) error {
	if err := Reachable(to.Addr()); err != nil {
		return refuse(to.Addr().Unmap().String(), "%s", err)
	}
	return nil
}
