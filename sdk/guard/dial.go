package guard

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// Judge decides whether an IP address may be dialed. [Guard] and [Named] implement it.
type Judge interface{ Address(to netip.AddrPort) error }

// Dialer connects to hosts that a judge allows. Without Lookup and Dial it uses the
// resolver and the network of the system.
type Dialer struct {
	// Guard decides about each address; it is required.
	Guard Judge
	// Lookup returns the addresses of a host; nil uses the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an IP address; nil uses the system's network, where the guard
	// checks the address of the socket once more.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

const (
	// perAddress is the time limit for each address of a host.
	perAddress = 5 * time.Second
	// maxAddresses is the number of addresses of a host to try.
	maxAddresses = 8
)

// DialContext resolves a host once and connects to the first address that is allowed and
// accepts the connection. If no address is allowed, the error is a [*RefusalError].
func (d *Dialer) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	ips, err := d.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	var refused, failed error
	for _, ip := range ips[:min(len(ips), maxAddresses)] {
		to := netip.AddrPortFrom(ip.Unmap(), uint16(port))
		if err := d.Guard.Address(to); err != nil {
			if refused == nil {
				refused = named(err, host)
			}
			continue
		}
		conn, err := d.dial(ctx, to)
		if err == nil {
			return conn, nil
		}
		failed = err
		if ctx.Err() != nil {
			break
		}
	}
	switch {
	case failed != nil:
		return nil, failed
	case refused != nil:
		return nil, refused
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// named replaces the address in a refusal by its host, so that the caller cannot learn
// the addresses behind the names of a private network.
func named(err error, host string) error {
	if r, ok := errors.AsType[*RefusalError](err); ok && r.Address != host {
		return &RefusalError{Address: host, Reason: "its " + addressReason, Hint: r.Hint}
	}
	return err
}

const addressReason = "address is private or special, or the administrator denies it"

func (d *Dialer) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}, nil
	}
	if d.Lookup != nil {
		return d.Lookup(ctx, host)
	}
	// The final dot prevents a lookup in the search domains of the system.
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host+".")
}

func (d *Dialer) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, perAddress)
	defer cancel()
	network := "tcp4"
	if to.Addr().Is6() {
		network = "tcp6"
	}
	if d.Dial != nil {
		return d.Dial(ctx, network, to.String())
	}
	dialer := net.Dialer{KeepAlive: -1, Control: d.Control}
	return dialer.DialContext(ctx, network, to.String())
}

// Control checks the address of a socket. Use it as [net.Dialer.Control].
func (d *Dialer) Control(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return refuse(address, "the network is %s, expected TCP", network)
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return refuse(address, "it is not an IP address").malformed()
	}
	return d.Guard.Address(to)
}
