package egress

import (
	"net"
	"sync"
	"syscall"
)

// Places bound the open connections of several proxies together: the descriptors of the host are for
// more than the network of plugins. Each connection takes one place. nil has no bound.
type Places struct{ taken chan struct{} }

// perConnection is how many descriptors a connection has at most: two sockets, and for each direction
// the pipe by which the kernel carries bytes.
const perConnection = 6

// NewPlaces returns a number of places.
func NewPlaces(most int) *Places { return &Places{taken: make(chan struct{}, max(1, most))} }

// HalfOfDescriptors returns places for connections with half of the descriptors that this process may
// have. It is not less than 16.
func HalfOfDescriptors() *Places {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		limit.Cur = 1024 // what POSIX systems have at least
	}
	return NewPlaces(max(16, int(min(limit.Cur, 1<<20))/2/perConnection))
}

// share is how many of the places one process may take at most.
func (p *Places) share(most int) int {
	if p == nil {
		return most
	}
	return min(most, max(1, cap(p.taken)/4))
}

// take waits for a place. It returns false if closed is closed before.
func (p *Places) take(closed <-chan struct{}) bool {
	if p == nil {
		return true
	}
	select {
	case p.taken <- struct{}{}:
		return true
	case <-closed:
		return false
	}
}

func (p *Places) leave() {
	if p != nil {
		<-p.taken
	}
}

// limited is a listener with a bound on its open connections, and on those of all; further ones wait in
// the kernel. It
// is not that of netutil, whose connections cannot end in one direction, and whose bytes the
// kernel cannot carry.
type limited struct {
	net.Listener

	places chan struct{}
	ofAll  *Places
	closed chan struct{}
	end    sync.Once
}

func limit(l net.Listener, most int, ofAll *Places) *limited {
	return &limited{Listener: l, places: make(chan struct{}, ofAll.share(most)), ofAll: ofAll, closed: make(chan struct{})}
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
	if !l.ofAll.take(l.closed) { // not before there is a connection: a proxy that nobody uses takes no place
		<-l.places
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	return &place{Conn: conn, leave: sync.OnceFunc(func() {
		l.ofAll.leave()
		<-l.places
	})}, nil
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
