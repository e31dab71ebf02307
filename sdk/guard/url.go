package guard

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"github.com/toolhost/toolhost/sdk/display"
)

const (
	maxURL   = 8 << 10 // bytes
	maxShown = 200     // bytes of a URL to show in an error
)

// Shown returns a URL, or a part of one, as an error shows it: escaped, and at most 200
// bytes of it.
func Shown(text string) string { return display.Cut(display.VisibleName(text), maxShown) }

// URL parses a URL and checks it like [Guard.Check]. The host of the result is in lower
// case ASCII, and it has no fragment.
func (g *Guard) URL(text string) (*url.URL, error) {
	shown := display.Cut(text, maxShown)
	if len(text) > maxURL {
		return nil, refuse(shown, "the URL has %d bytes, expected at most %d bytes", len(text), maxURL).malformed()
	}
	for _, c := range text {
		if c <= ' ' || c == 0x7f || c == '\\' {
			return nil, refuse(shown, "the URL contains a space, a backslash or a control character").malformed().
				withHint("escape such characters, for example a space as %%20")
		}
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, refuse(shown, "it is not a valid URL").malformed().withHint("use a URL such as https://example.com/page")
	}
	if err := g.Check(u); err != nil {
		return nil, err
	}
	return u, nil
}

// Check refuses a URL whose scheme, host or port is not allowed. It normalizes u: the host
// becomes lower case ASCII, and the fragment is removed. It resolves no names.
func (g *Guard) Check(u *url.URL) error {
	shown := display.Cut(u.Redacted(), maxShown)
	scheme := strings.ToLower(u.Scheme)
	switch {
	case scheme != "http" && scheme != "https":
		return refuse(shown, "the scheme must be http or https").malformed()
	case u.Opaque != "" || u.Host == "" || u.Hostname() == "":
		return refuse(shown, "the URL has no host").malformed().withHint("use a URL such as https://example.com/page")
	case u.User != nil:
		return refuse(shown, "the URL contains a user name or password").malformed().
			withHint("remove the part before the @; http_request can send credentials as a secret in a header")
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
	return refuse(shown, "port %d is not allowed", port).withHint("allowed ports: %s", joined(g.ports))
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

// portOf returns the port of a URL, or the default port of its scheme.
func portOf(u *url.URL, scheme string) (uint16, error) {
	text := u.Port()
	if text == "" {
		if strings.HasSuffix(u.Host, ":") {
			return 0, refuse(display.Cut(u.Redacted(), maxShown), "there is no port after the colon").malformed()
		}
		return defaultPort(scheme), nil
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, refuse(display.Cut(u.Redacted(), maxShown), "%s is not a valid port", text).malformed()
	}
	return uint16(port), nil
}

// host returns the normalized host of a URL, or refuses it.
func (g *Guard) host(u *url.URL) (string, error) {
	name := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		ip, err := netip.ParseAddr(name)
		if err != nil || !ip.Is6() || ip.Zone() != "" {
			return "", refuse(display.Cut(u.Redacted(), maxShown), "the host in brackets is not an IPv6 address").malformed()
		}
		return g.literal(ip)
	}
	if strings.Contains(name, "%") {
		return "", refuse(display.Cut(u.Redacted(), maxShown), "the host contains escapes").malformed().withHint("write the host without escapes")
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		return g.literal(ip)
	}
	return g.Name(name)
}

// Name returns a host name in lower case ASCII, or refuses it.
func (g *Guard) Name(name string) (string, error) {
	host, err := HostName(name)
	if err != nil {
		return "", refuse(display.Cut(name, maxShown), "the host is not valid: %v", err).malformed()
	}
	if err := g.Domain(host); err != nil {
		return "", err
	}
	if len(g.private) == 0 && Internal(host) {
		return "", refuse(host, "it is a name of a private network, not a public one")
	}
	return host, nil
}

// literal returns the text of a host that is an IP address, or refuses it. It converts an
// IPv4-mapped IPv6 address to the IPv4 address.
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

// Internal reports whether a name exists in private networks only: it has no dot, or is in
// a domain that is reserved for them.
func Internal(host string) bool {
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

// hostNameError reports why a host name is not valid.
type hostNameError string

// Error implements error.
func (e hostNameError) Error() string { return string(e) }

// HostName returns a host name in lower case ASCII, without a final dot. It refuses names
// that look like numbers, since resolvers may read 127.1 or 0x7f000001 as an IP address.
func HostName(name string) (string, error) {
	host, err := idna.Lookup.ToASCII(strings.TrimSuffix(name, "."))
	if err != nil {
		// The profile refuses underscores, which real names contain.
		if host = strings.ToLower(strings.TrimSuffix(name, ".")); !isASCII(host) {
			return "", hostNameError("it is not a valid international domain name")
		}
	}
	if host == "" || len(host) > 253 {
		return "", hostNameError("expected 1 to 253 characters")
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		switch {
		case label == "":
			return "", hostNameError("it begins with a dot or contains two dots in a row")
		case len(label) > 63:
			return "", hostNameError("a label has more than 63 characters")
		case label[0] == '-' || label[len(label)-1] == '-':
			return "", hostNameError("a label begins or ends with a hyphen")
		case strings.ContainsFunc(label, func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_'
		}):
			return "", hostNameError("it contains characters that are not allowed in host names")
		}
	}
	if numeric(labels[len(labels)-1]) {
		return "", hostNameError("its last label is a number, as in an unusual spelling of an IP address")
	}
	return host, nil
}

// numeric reports whether a resolver could read a label as a number.
func numeric(label string) bool {
	if digits, ok := strings.CutPrefix(label, "0x"); ok {
		return !strings.ContainsFunc(digits, func(c rune) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') })
	}
	return !strings.ContainsFunc(label, func(c rune) bool { return c < '0' || c > '9' })
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c > 0x7f })
}
