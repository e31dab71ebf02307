package guard

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// maxURL bounds the text of an address, and maxShown what an error says of it.
const (
	maxURL   = 8 << 10
	maxShown = 200
)

// Shorten returns the beginning of a text that is longer than an error shows.
func Shorten(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "..."
}

// URL reads the text of an address and refuses it if nothing may be contacted by
// it. The host of the result is in lower case and in ASCII; it has no fragment.
func (g *Guard) URL(text string) (*url.URL, error) {
	shown := Shorten(text)
	if len(text) > maxURL {
		return nil, refuse(shown, "an address has at most %d bytes, this one %d", maxURL, len(text)).malformed()
	}
	for _, c := range text {
		if c <= ' ' || c == 0x7f || c == '\\' {
			return nil, refuse(shown, "the address holds a space, a backslash or a control character").malformed().
				withHint("write such characters as escapes, for example %%20")
		}
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, refuse(shown, "it is no URL").malformed().withHint("an address looks like https://example.com/page")
	}
	if err := g.Check(u); err != nil {
		return nil, err
	}
	return u, nil
}

// Check refuses an address by its form. It brings the host of u into lower case
// and ASCII, and drops the fragment.
func (g *Guard) Check(u *url.URL) error {
	shown := Shorten(u.Redacted())
	scheme := strings.ToLower(u.Scheme)
	switch {
	case scheme != "http" && scheme != "https":
		return refuse(shown, "only http and https can be contacted").malformed()
	case u.Opaque != "" || u.Host == "" || u.Hostname() == "":
		return refuse(shown, "it names no host").malformed().withHint("an address looks like https://example.com/page")
	case u.User != nil:
		return refuse(shown, "it holds a user name or password").malformed().
			withHint("leave out what stands before the @; a tool that takes headers can send credentials by the name of a secret")
	}
	port, err := portOf(u, scheme)
	if err != nil {
		return err
	}
	host, err := g.host(u)
	if err != nil {
		return err
	}
	if !slices.Contains(g.ports, port) {
		return g.refusePort(shown, port)
	}
	u.Scheme, u.Fragment, u.RawFragment = scheme, "", ""
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if u.Port() != "" && port != defaultPort(scheme) {
		host = net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(int(port)))
	}
	u.Host = host
	return nil
}

func (g *Guard) refusePort(shown string, port uint16) error {
	return refuse(shown, "port %d may not be contacted", port).withHint("these may: %s", joined(g.ports))
}

func joined(ports []uint16) string {
	var all []string
	for _, port := range ports {
		all = append(all, strconv.Itoa(int(port)))
	}
	return strings.Join(all, ", ")
}

func defaultPort(scheme string) uint16 {
	if scheme == "https" {
		return 443
	}
	return 80
}

// portOf returns the port that would be contacted.
func portOf(u *url.URL, scheme string) (uint16, error) {
	text := u.Port()
	if text == "" {
		if strings.HasSuffix(u.Host, ":") {
			return 0, refuse(Shorten(u.Redacted()), "no port follows the colon").malformed()
		}
		return defaultPort(scheme), nil
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, refuse(Shorten(u.Redacted()), "%s is no port", text).malformed()
	}
	return uint16(port), nil
}

// host returns the host of an address as it is looked up, or refuses it.
func (g *Guard) host(u *url.URL) (string, error) {
	name := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		ip, err := netip.ParseAddr(name)
		if err != nil || !ip.Is6() || ip.Zone() != "" {
			return "", refuse(Shorten(u.Redacted()), "what stands in brackets is no IPv6 address").malformed()
		}
		return g.literal(ip)
	}
	if strings.Contains(name, "%") {
		return "", refuse(Shorten(u.Redacted()), "its host is written with escapes").malformed().withHint("write the host in plain letters")
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		return g.literal(ip)
	}
	return g.Name(name)
}

// Name returns a host's name as it is looked up, or refuses it.
func (g *Guard) Name(name string) (string, error) {
	host, err := hostName(name)
	if err != nil {
		return "", refuse(Shorten(name), "its host is not valid: %v", err).malformed()
	}
	if err := g.Domain(host); err != nil {
		return "", err
	}
	if len(g.private) == 0 && internal(host) {
		return "", refuse(host, "it is a name of a private network, not of the internet")
	}
	return host, nil
}

// literal judges an address that is a number already. One of IPv4 in the form of
// IPv6 is the one of IPv4 from here on.
func (g *Guard) literal(ip netip.Addr) (string, error) {
	ip = ip.Unmap()
	if err := g.Domain(ip.String()); err != nil {
		return "", err
	}
	if err := g.Address(netip.AddrPortFrom(ip, g.ports[0])); err != nil {
		return "", err
	}
	return ip.String(), nil
}

// internal reports whether only private networks know a name: one without a dot,
// or below a domain that is set aside for them.
func internal(host string) bool {
	if !strings.Contains(host, ".") {
		return true
	}
	for _, domain := range []string{
		"localhost", "localdomain", "local", "internal", "intranet", "private", "corp", "home", "lan", "home.arpa",
		"test", "invalid", "onion", "arpa",
	} {
		if within(host, domain) {
			return true
		}
	}
	return false
}

// hostNameError says what is wrong with the name of a host.
type hostNameError string

// Error implements error.
func (e hostNameError) Error() string { return string(e) }

// hostName returns the name of a host in lower case and ASCII, without a final
// dot. It takes no number for a name, however it is written: what looks up names
// may read 127.1 or 0x7f000001 as an address.
func hostName(name string) (string, error) {
	host, err := idna.Lookup.ToASCII(strings.TrimSuffix(name, "."))
	if err != nil {
		// The profile refuses names with an underscore, which exist.
		if host = strings.ToLower(strings.TrimSuffix(name, ".")); !isASCII(host) {
			return "", hostNameError("it is no name by the rules for international ones")
		}
	}
	if host == "" || len(host) > 253 {
		return "", hostNameError("a name has 1 to 253 characters")
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		switch {
		case label == "":
			return "", hostNameError("two dots follow each other, or one comes first")
		case len(label) > 63:
			return "", hostNameError("a part between dots has more than 63 characters")
		case label[0] == '-' || label[len(label)-1] == '-':
			return "", hostNameError("a part begins or ends with a hyphen")
		case strings.ContainsFunc(label, func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_'
		}):
			return "", hostNameError("it holds characters that no name has")
		}
	}
	if numeric(labels[len(labels)-1]) {
		return "", hostNameError("its last part is a number, as in an address that is not written as usual")
	}
	return host, nil
}

// numeric reports whether a label can be read as a number.
func numeric(label string) bool {
	if digits, ok := strings.CutPrefix(label, "0x"); ok {
		return !strings.ContainsFunc(digits, func(c rune) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') })
	}
	return !strings.ContainsFunc(label, func(c rune) bool { return c < '0' || c > '9' })
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c > 0x7f })
}
