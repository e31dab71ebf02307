package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/sdk/guard"
)

// Target is where a process wants to connect.
type Target struct {
	// Host is a name in lower case ASCII, or an IP address.
	Host string
	Port uint16

	ip netip.Addr // of a host that is an address
}

// String returns "host:port".
func (t Target) String() string { return net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port))) }

// ParseTarget parses "host:port". A port of 0 requires one in the text; otherwise port is the
// default.
func ParseTarget(text string, port uint16) (Target, error) {
	host, given, err := splitPort(text)
	switch {
	case err != nil:
		return Target{}, err
	case given != 0:
		port = given
	case port == 0:
		return Target{}, errors.New("the port is missing")
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" {
			return Target{}, fmt.Errorf("the address %s names a network interface", ip)
		}
		return Target{Host: ip.Unmap().String(), Port: port, ip: ip.Unmap()}, nil
	}
	name, err := guard.HostName(host)
	if err != nil {
		return Target{}, fmt.Errorf("%q is not a host name: %w", host, err)
	}
	return Target{Host: name, Port: port}, nil
}

// splitPort splits "host:port", "[address]:port" and their forms without a port, which give 0. The
// host has no brackets.
func splitPort(text string) (host string, port uint16, err error) {
	if rest, ok := strings.CutPrefix(text, "["); ok {
		inside, after, closed := strings.Cut(rest, "]")
		if !closed || after != "" && after[0] != ':' {
			return "", 0, fmt.Errorf("%q has a bracket without its pair", text)
		}
		if ip, err := netip.ParseAddr(strings.SplitN(inside, "/", 2)[0]); err != nil || !ip.Is6() {
			return "", 0, fmt.Errorf("%q is not an IPv6 address", inside)
		}
		host, text = inside, after
	} else {
		at := strings.LastIndexByte(text, ':')
		if at < 0 || strings.Count(text, ":") > 1 { // an IPv6 address without brackets
			return text, 0, nil
		}
		host, text = text[:at], text[at:]
	}
	if text == "" {
		return host, 0, nil
	}
	number, err := strconv.ParseUint(text[1:], 10, 16)
	if err != nil || number == 0 {
		return "", 0, fmt.Errorf("%q is not a port, expected 1 to 65535", text[1:])
	}
	return host, uint16(number), nil
}
