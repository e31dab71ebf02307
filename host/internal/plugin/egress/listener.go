package egress

import (
	"net"
	"sync"
)

// limited is a listener with a bound on its open connections; further ones wait in the kernel. It
// is not that of netutil, whose connections cannot end in one direction, and whose bytes the
// kernel cannot carry.
type limited struct {
	net.Listener

	places chan struct{}
	closed chan struct{}
	end    sync.Once
}

func limit(l net.Listener, most int) *limited {
	return &limited{Listener: l, places: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept implements [net.Listener].
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &place{Conn: conn, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

// Close implements [net.Listener].
func (l *limited) Close() error {
	l.end.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// place is a connection of a limited listener.
type place struct {
	net.Conn

	leave func()
}

// Close implements [net.Conn].
func (p *place) Close() error {
	defer p.leave()
	return p.Conn.Close()
}

// bare returns the connection of the kernel in that of a listener, to carry bytes. It is not for
// closing.
func bare(conn net.Conn) net.Conn {
	if p, ok := conn.(*place); ok {
		return p.Conn
	}
	return conn
}
