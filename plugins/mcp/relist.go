package main

import (
	"context"
	"reflect"

	"golang.org/x/time/rate"
)

// A server may change its tools now and then. It may not keep the host busy with it.
const (
	relistsPerSecond = 0.2
	relistBurst      = 3
)

// relist notes that the server's list of tools may have changed. It does not block.
func (s *server) relist() {
	select {
	case s.changed <- struct{}{}:
	default: // it is noted
	}
}

// follow offers the tools of the server again when its list has changed, until the plugin stops.
func (s *server) follow() {
	limit := rate.NewLimiter(relistsPerSecond, relistBurst)
	for {
		select {
		case <-s.changed:
		case <-s.life.Done():
			return
		}
		if limit.Wait(s.life) != nil {
			return
		}
		s.offerAgain()
	}
}

// offerAgain reads the list of tools of the server that runs, and offers them if they differ. A list
// that cannot be read changes nothing.
func (s *server) offerAgain() {
	s.mu.Lock()
	current := s.current
	s.mu.Unlock()
	if current == nil {
		return // the next start reads the list
	}
	ctx, cancel := context.WithTimeout(s.life, s.settings.StartTimeout)
	defer cancel()
	listed, err := current.list(ctx)
	if err != nil {
		s.log.Warn("the MCP server says that its tools have changed, and does not list them", "error", s.said.clean(err.Error()))
		return
	}
	tools := s.convert(listed)
	s.mu.Lock()
	same := reflect.DeepEqual(tools, s.offered)
	s.mu.Unlock()
	if same {
		return
	}
	if err := s.offer(tools); err != nil {
		s.log.Warn("the tools of the MCP server have changed, and are not offered", "error", err)
		return
	}
	s.log.Info("the tools of the MCP server have changed", "tools", len(tools), "listed", listed.total)
}
