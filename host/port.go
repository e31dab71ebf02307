package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/state/hosts"
)

// autoPort is the value of --port for the configured port or one of the next.
const autoPort = "auto"

// morePorts is how many ports above the configured one --port auto tries.
const morePorts = 20

// ports are what serve --port says.
type ports struct {
	app   *app
	given bool
	auto  bool
	port  uint16
}

// portsOf reads the value of --port; "" is the configured port.
func portsOf(a *app, flag string) (ports, error) {
	if flag == "" || flag == autoPort {
		return ports{app: a, given: flag != "", auto: flag != ""}, nil
	}
	number, err := strconv.ParseUint(flag, 10, 16)
	if err != nil {
		return ports{}, &usageError{fmt.Errorf("--port: %q is not a port: expected a number up to 65535, 0 for any free port, or %s for the configured port or the next free one", flag, autoPort)}
	}
	return ports{app: a, given: true, port: uint16(number)}, nil
}

// choose returns the addresses to try in turn.
func (p ports) choose(configured netip.AddrPort) []netip.AddrPort {
	switch {
	case !p.given:
		return []netip.AddrPort{configured}
	case !p.auto:
		return []netip.AddrPort{netip.AddrPortFrom(configured.Addr(), p.port)}
	case configured.Port() == 0:
		return []netip.AddrPort{configured} // any free port
	}
	var addresses []netip.AddrPort
	for port := uint(configured.Port()); port <= math.MaxUint16 && len(addresses) <= morePorts; port++ {
		addresses = append(addresses, netip.AddrPortFrom(configured.Addr(), uint16(port)))
	}
	return addresses
}

// serve has the host listen, unless HTTP is off. It tells when the configured port belongs to
// another process.
func (p ports) serve(ctx context.Context, d *daemon.Daemon) error {
	var configured netip.AddrPort
	address, err := d.ServeHTTP(ctx, func(c netip.AddrPort) []netip.AddrPort {
		configured = c
		return p.choose(c)
	})
	switch {
	case err != nil:
		return err
	case address == "" && p.given:
		return errors.New(`--port: HTTP is off: server.listen is "" in the configuration`)
	case p.auto && configured.Port() != 0 && address != configured.String():
		why := cmp.Or(whoListens(configured.String()), "it is in use")
		fmt.Fprintf(p.app.stderr, "toolhost: listening on %s instead of %s: %s\n", address, configured, line(why))
	}
	return nil
}

// portTaken says who has the port of an error, and what to type.
func (a *app) portTaken(err error) error {
	failed, ok := errors.AsType[*net.OpError](err)
	if !ok || failed.Addr == nil || !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	hint := fmt.Sprintf("%s takes the next free port; or stop what listens there, or write another port into the server block, such as listen = %q",
		a.command("serve --port "+autoPort), nextPort(failed.Addr.String()))
	if who := whoListens(failed.Addr.String()); who != "" {
		err = fmt.Errorf("%w: %s", err, line(who))
	}
	return &hintError{err, hint}
}

// whoListens describes the process that listens on an address, or is "".
func whoListens(address string) string {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return ""
	}
	uid, pid, found := auth.TCPListener(at)
	if !found {
		return ""
	}
	h, known := hosts.Process(pid)
	if pid == 0 || !known {
		return "a process of account " + hosts.Account(uid) + " listens there"
	}
	stateDir := h.StateDir
	h.StateDir = ""
	text := h.String() + " listens there"
	if of, err := hosts.ReadOrigin(stateDir); stateDir != "" && err == nil {
		text += ", the host of " + of.Path
	}
	return text
}

// nextPort returns the address with another port.
func nextPort(address string) string {
	addr, err := netip.ParseAddrPort(address)
	switch {
	case err != nil:
		return address
	case addr.Port() == math.MaxUint16:
		return netip.AddrPortFrom(addr.Addr(), addr.Port()-1).String()
	}
	return netip.AddrPortFrom(addr.Addr(), addr.Port()+1).String()
}
