package main

import "context"

// enter takes the turn in an owner's session, and waits for it. leave gives it
// back.
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

// living returns the shell of a session, and starts it if there is none; replaced
// says that there was one, whose end nobody was told of. The caller has the turn.
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

// makeRoom ends the shell of the user that was idle for longest, if there are
// more than there may be, and takes its turn for that. o.mu is held.
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
	default: // a command has just come for it
	}
}
