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

// Judge decides whether an address may be dialled: a [Guard], or [Named].
type Judge interface{ Address(to netip.AddrPort) error }

// Dialer connects to hosts that a guard does not refuse. Its zero value but for
// Guard uses the system's look-up and network.
type Dialer struct {
	// Guard judges each address that is dialled; it is required.
	Guard Judge
	// Lookup returns the addresses of a host; nil asks the system.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address that is a number; nil uses the system's
	// network, where the guard is asked once more about the address of the socket.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

const (
	// perAddress bounds the time for one of several addresses of a host.
	perAddress = 5 * time.Second
	// maxAddresses bounds how many addresses of a host are tried.
	maxAddresses = 8
)

// DialContext looks a host up once and connects to the first of its addresses
// that may be contacted and answers. If none may, the error is a [*RefusalError].
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

// named says in a refusal which host the address is of, and not which address:
// whoever asks learns nothing of the names in a private network.
func named(err error, host string) error {
	if r, ok := errors.AsType[*RefusalError](err); ok && r.Address != host {
		return &RefusalError{Address: host, Reason: "its " + addressReason, Hint: r.Hint}
	}
	return err
}

const addressReason = "address is private or special, or one that the administrator does not let be contacted"

func (d *Dialer) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}, nil
	}
	if d.Lookup != nil {
		return d.Lookup(ctx, host)
	}
	// The dot keeps the system from trying the name in its own domains.
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

// Control refuses to connect a socket: it is for [net.Dialer.Control].
func (d *Dialer) Control(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return refuse(address, "it would be contacted by %s, not by TCP", network)
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return refuse(address, "it is no address of a machine").malformed()
	}
	return d.Guard.Address(to)
}
