package main

import "context"

// enter waits for an owner's turn to use its shell. The caller must call leave.
func (o *owners) enter(ctx context.Context, who owner) (_ *session, leave func(), _ error) {
	o.mu.Lock()
	if refused := o.refuse(who); refused != nil {
		o.mu.Unlock()
		return nil, nil, refused
	}
	s := o.make(who)
	s.calls++
	o.mu.Unlock()
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		o.ended(s)
		return nil, nil, ctx.Err()
	}
	return s, func() {
		<-s.turn
		o.ended(s)
	}, nil
}

// look returns an owner's session, or nil.
func (o *owners) look(who owner) *session {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.of(who)
}

// living returns the shell of a session and starts one if there is none. replaced
// reports that the new shell replaces one whose end no result has reported. The
// caller has the turn.
func (o *owners) living(s *session, start func() (*living, error)) (_ *living, replaced bool, _ error) {
	if l := s.alive(); l != nil {
		return l, false, nil
	}
	l, err := start()
	if err != nil {
		return nil, false, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.over {
		l.process.Kill()
		return nil, false, errEnded()
	}
	s.shell.Store(l)
	o.makeRoom(s)
	replaced, s.untold = s.untold, true
	return l, replaced, nil
}

// makeRoom ends the longest idle shell of a user who has more than allowed. It
// takes the turn of that session to do so. o.mu is held.
func (o *owners) makeRoom(newest *session) {
	n := 0
	var oldest *session
	for _, s := range o.all {
		if s.owner.user != newest.owner.user || s.alive() == nil {
			continue
		}
		n++
		if s != newest && len(s.turn) == 0 && (oldest == nil || s.used.Before(oldest.used)) {
			oldest = s
		}
	}
	if n <= o.bounds.shells || oldest == nil {
		return
	}
	select {
	case oldest.turn <- struct{}{}:
		oldest.shell.Swap(nil).process.Kill()
		<-oldest.turn
	default: // a command has just started to use it
	}
}
