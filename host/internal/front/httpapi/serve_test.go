package httpapi

import (
	"errors"
	"net"
	"testing"
)

// Connections beyond the bound are accepted when an earlier one is closed.
func TestLimitListener(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newLimitListener(inner, 2, 0, nil)
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	accept := func() net.Conn {
		t.Helper()
		dial()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, second := accept(), accept()
	dial()
	third := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			err = c.Close()
		}
		third <- err
	}()
	select {
	case err := <-third:
		t.Fatalf("a third connection was accepted beside two: %v", err)
	default:
	}
	first.Close()
	first.Close() // gives its place once
	if err := <-third; err != nil {
		t.Errorf("after one was closed: %v", err)
	}
	if len(l.slots) != 1 {
		t.Errorf("%d places are taken, want 1", len(l.slots))
	}
	another := accept()
	go func() {
		_, err := l.Accept()
		third <- err
	}()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-third; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close = %v, want ErrClosed", err)
	}
	_ = l.Close()
	second.Close()
	another.Close()
}
