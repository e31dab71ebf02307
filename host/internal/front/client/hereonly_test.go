package client

import (
	"context"
	"errors"
	"net"
	"testing"
)

// awayConn is a connection to an address.
type awayConn struct {
	net.Conn

	to     net.Addr
	closed bool
}

func (c *awayConn) RemoteAddr() net.Addr { return c.to }

func (c *awayConn) Close() error {
	c.closed = true
	return nil
}

// TestHereOnly: plain HTTP to localhost goes nowhere else, whatever the name resolves to.
func TestHereOnly(t *testing.T) {
	for address, here := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true, "192.0.2.7": false, "10.0.0.1": false, "::": false,
	} {
		dialed := &awayConn{to: &net.TCPAddr{IP: net.ParseIP(address), Port: 7780}}
		conn, err := hereOnly(func(context.Context, string, string) (net.Conn, error) { return dialed, nil })(t.Context(), "tcp", "localhost:7780")
		if (err == nil) != here || (conn != nil) != here || dialed.closed == here || err != nil && !errors.Is(err, ErrUntrusted) {
			t.Errorf("a dial that reaches %s = %v, %v; closed: %v", address, conn, err, dialed.closed)
		}
	}
}
