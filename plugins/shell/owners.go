package main

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// owner owns jobs and session shells. Other owners cannot refer to them.
type owner struct{ user, session string }

func ownerOf(call *sdk.Call) owner { return owner{call.User(), call.Session()} }

// bounds limit what owners may have.
type bounds struct {
	jobs, jobsOfUser int           // running at the same time
	shells           int           // of a user
	idle             time.Duration // after which a session is ended
}

// owners are the sessions that have something that outlives a call.
type owners struct {
	mu     sync.Mutex // guards everything below, and all sessions
	bounds bounds
	closed bool
	all    map[owner]*session
	// gone are recently ended sessions. A call of theirs may still be about to
	// start something.
	gone []string
	// untold are the owners of idle sessions that were ended with a shell whose end
	// no result has reported. Their next session reports it.
	untold []owner
}

// maxGone is how many ended sessions are remembered; the host never reuses their
// ids. maxUntold is how many owners are remembered in untold.
const (
	maxGone   = 1024
	maxUntold = 1024
)

// errEnded returns the error for a call whose session has ended.
func errEnded() *tool.Error { return tool.Errorf(tool.Canceled, "the session has ended") }

// session is the state of one owner.
type session struct {
	owner    owner
	jobs     []*job // in the order of their start, including some that have ended
	starting int    // jobs that are being started
	shell    atomic.Pointer[living]
	turn     chan struct{} // holds a token while a command uses the shell
	untold   bool          // no result has reported the end of its last shell; guarded by turn
	calls    int           // in progress
	used     time.Time
	timer    *time.Timer // ends the session when it is idle for too long
	over     bool
}

func newOwners() *owners { return &owners{all: make(map[owner]*session)} }

// bound sets the bounds. It is called before the first call.
func (o *owners) bound(b bounds) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bounds = b
}

// of returns an owner's session and marks it as used; nil if it has none. o.mu is
// held.
func (o *owners) of(who owner) *session {
	s := o.all[who]
	if s != nil {
		s.used = time.Now()
	}
	return s
}

// begin records the start of an owner's call, and end records its end. A session
// with calls in progress is not idle.
func (o *owners) begin(who owner) (end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.of(who)
	if s == nil {
		return func() {}
	}
	s.calls++
	return func() { o.ended(s) }
}

// ended records the end of a call of a session.
func (o *owners) ended(s *session) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.calls--
	s.used = time.Now()
}

// make returns an owner's session and creates it if it does not exist. o.mu is
// held.
func (o *owners) make(who owner) *session {
	if s := o.of(who); s != nil {
		return s
	}
	s := &session{owner: who, used: time.Now(), turn: make(chan struct{}, 1)}
	s.timer = time.AfterFunc(o.bounds.idle, func() { o.expire(s) }) // drop stops it
	if i := slices.Index(o.untold, who); i >= 0 {
		o.untold = slices.Delete(o.untold, i, i+1)
		s.untold = true
	}
	o.all[who] = s
	return s
}

// expire ends a session that has been idle for long enough.
func (o *owners) expire(s *session) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.over {
		return
	}
	left := o.bounds.idle - time.Since(s.used)
	if s.calls+s.starting > 0 {
		left = o.bounds.idle
	}
	if left > 0 {
		s.timer.Reset(left)
		return
	}
	if s.untold { // no call is in progress, so no command has the turn
		if o.untold = append(o.untold, s.owner); len(o.untold) > maxUntold {
			o.untold = slices.Delete(o.untold, 0, 1)
		}
	}
	o.drop(s)
}

// drop ends a session. o.mu is held.
func (o *owners) drop(s *session) {
	s.over = true
	s.timer.Stop()
	delete(o.all, s.owner)
	for _, j := range s.jobs {
		j.process.Kill()
	}
	if l := s.shell.Load(); l != nil {
		l.process.Kill()
	}
}

// end ends a session of whatever user.
func (o *owners) end(session string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone = append(o.gone, session); len(o.gone) > maxGone {
		o.gone = slices.Delete(o.gone, 0, 1)
	}
	for who, s := range o.all {
		if who.session == session {
			o.drop(s)
		}
	}
}

// refuse returns the reason for which an owner cannot start anything, nil if it
// can. o.mu is held.
func (o *owners) refuse(who owner) *tool.Error {
	switch {
	case o.closed:
		return tool.Errorf(tool.Unavailable, "the plugin is stopping")
	case slices.Contains(o.gone, who.session):
		return errEnded()
	case who.session == "":
		return tool.Errorf(tool.Unavailable, "this client has no session, so it cannot have jobs or a shell that keeps its state: "+
			"the host cannot tell it from other clients").
			WithHint("connect the client through toolhost mcp, with a revision of MCP that has sessions, or from this machine")
	}
	return nil
}

// close ends everything and waits until all processes are gone. The sdk bounds the
// wait.
func (o *owners) close() {
	o.mu.Lock()
	o.closed = true
	var left []<-chan struct{}
	for _, s := range o.all {
		for _, j := range s.jobs {
			left = append(left, j.process.Done())
		}
		if l := s.shell.Load(); l != nil {
			left = append(left, l.process.Done())
		}
		o.drop(s)
	}
	o.mu.Unlock()
	for _, done := range left {
		<-done
	}
}

// startJob starts a job within the bounds.
func (o *owners) startJob(who owner, start func() (*job, error)) (*job, error) {
	s, err := o.place(who)
	if err != nil {
		return nil, err
	}
	j, err := start()
	o.mu.Lock()
	defer o.mu.Unlock()
	s.starting--
	s.used = time.Now()
	if err != nil {
		return nil, err
	}
	if s.over {
		j.process.Kill()
		return nil, errEnded()
	}
	s.jobs = append(s.jobs, j)
	o.forget(who)
	return j, nil
}

// place reserves a place for a job.
func (o *owners) place(who owner) (*session, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if refused := o.refuse(who); refused != nil {
		return nil, refused
	}
	mine, ofUser := 0, 0
	for _, s := range o.all {
		if s.owner.user != who.user {
			continue
		}
		n := s.running()
		ofUser += n
		if s.owner == who {
			mine = n
		}
	}
	full := func(n int, of string) error {
		return tool.Errorf(tool.ResourceExhausted, "this %[2]s already has %[1]d running jobs, the maximum", n, of).
			WithHint("wait for one to end, or end one with process_kill; process_list lists them")
	}
	switch {
	case mine >= o.bounds.jobs:
		return nil, full(mine, "session")
	case ofUser >= o.bounds.jobsOfUser:
		return nil, full(ofUser, "user")
	}
	s := o.make(who)
	s.starting++
	return s, nil
}

// running counts the jobs that are running or being started.
func (s *session) running() int {
	n := s.starting
	for _, j := range s.jobs {
		if !j.over() {
			n++
		}
	}
	return n
}

// forget removes the oldest ended jobs: it keeps as many ended jobs of the session,
// and of the user, as may run. o.mu is held.
func (o *owners) forget(who owner) {
	ofSession, ofUser := o.bounds.jobs, o.bounds.jobsOfUser
	var ended []*job
	for _, s := range o.all {
		if s.owner.user != who.user {
			continue
		}
		for _, j := range s.jobs {
			if j.over() {
				ended = append(ended, j)
			}
		}
	}
	slices.SortFunc(ended, func(a, b *job) int { return b.started.Compare(a.started) })
	dropped := make(map[*job]bool)
	for _, j := range ended { // the latest first
		mine := slices.Contains(o.all[who].jobs, j)
		switch {
		case ofUser == 0, mine && ofSession == 0:
			dropped[j] = true
			continue
		case mine:
			ofSession--
		}
		ofUser--
	}
	for _, s := range o.all {
		s.jobs = slices.DeleteFunc(s.jobs, func(j *job) bool { return dropped[j] })
	}
}

// jobsOf returns an owner's jobs, the oldest first.
func (o *owners) jobsOf(who owner) []*job {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.of(who)
	if s == nil {
		return nil
	}
	return append([]*job(nil), s.jobs...)
}

// job returns one of an owner's jobs.
func (o *owners) job(who owner, id string) (*job, error) {
	for _, j := range o.jobsOf(who) {
		if j.id == id {
			return j, nil
		}
	}
	return nil, tool.Errorf(tool.NotFound, "this session has no job %s", tool.VisibleName(id)).
		WithHint("process_list lists the jobs; jobs end with their session, and when the host restarts the plugin")
}
