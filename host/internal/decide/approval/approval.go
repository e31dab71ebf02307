// Package approval asks people whether a call may run, and remembers their
// standing answers. A question is a durable record that is bound to one exact
// call: approving it frees that call, once, before its expiry, and no other.
// The first decision wins; every later one learns what was decided.
//
// Nothing is true in memory before it is true on disk: when the disk cannot be
// written, nobody is asked, nothing is decided and no call runs.
package approval

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// defaultTimeout is how long a question waits for an answer.
	defaultTimeout = 10 * time.Minute
	// defaultMaxOpen bounds the open questions of a user.
	defaultMaxOpen = 20
)

// Options are what a [Service] needs.
type Options struct {
	// Store keeps the records; required.
	Store *store.Store
	// Grants takes the standing answers; required.
	Grants *Grants
	// Timeout is how long a record can be decided, and then spent, after it was
	// made; 0 means 10 minutes.
	Timeout time.Duration
	// MaxOpen bounds the open records of one user; 0 means 20.
	MaxOpen int
	// Changed is called after each durable change of a record, in the order of
	// its changes, with the record without its arguments and preview. It must
	// return at once and must not call the service. Nil drops it.
	Changed func(Record)
	// Logger takes what happens without a caller; nil drops it.
	Logger hclog.Logger
	// Now is the wall clock; nil means [time.Now].
	Now func() time.Time
}

// Service keeps the questions and takes the answers. Its methods may be called
// concurrently, and wait for the disk.
type Service struct {
	store   *store.Store
	grants  *Grants
	timeout time.Duration
	maxOpen int
	changed func(Record)
	logger  hclog.Logger
	now     func() time.Time
	started time.Time // with the reading of a clock that nobody sets back

	mu          sync.Mutex // guards what follows and the fields of live that say so; taken after live.mu
	live        map[string]*live
	closedCount int // since records were last removed
	closedBytes int

	rouse   chan struct{} // wakes the clock; holds one
	closing chan struct{} // closed by Close
	stop    context.CancelFunc
	stopped chan struct{} // closed when the clock has ended
	close   sync.Once
}

// live is what the process knows about a record that is open or approved.
type live struct {
	id, user string
	bytes    int // of arguments and preview
	// mu orders the changes of the record. It is held across the writing of a
	// change and the call of Changed, and taken before Service.mu.
	mu sync.Mutex

	expires  time.Time     // by the wall clock
	deadline time.Duration // by the clock that nobody sets back, since Service.started

	answered chan struct{} // closed when the record is no longer open
	failure  error         // why the end of the record could not be written; guarded by Service.mu
	claimed  bool          // an operation waits for it; guarded by Service.mu
	woken    bool          // answered is closed; guarded by Service.mu
}

// errClosed answers those who wait when the host stops.
var errClosed = tool.Errorf(tool.Unavailable, "the host is stopping").WithHint("call again later: the approval is kept")

// New returns a service that knows the records of earlier runs. Those whose time
// has passed meanwhile, or which come from the future because the clock was set
// back, are closed as expired. ctx bounds New only; Close the service before the
// store and the grants.
func New(ctx context.Context, opts Options) (*Service, error) {
	switch {
	case opts.Store == nil:
		return nil, errors.New("approvals: no store is given")
	case opts.Grants == nil:
		return nil, errors.New("approvals: no grants are given")
	case opts.Timeout < 0 || opts.MaxOpen < 0:
		return nil, errors.New("approvals: the timeout and the number of open approvals must not be negative")
	}
	d := &Service{
		store: opts.Store, grants: opts.Grants, timeout: opts.Timeout, maxOpen: opts.MaxOpen,
		changed: opts.Changed, logger: opts.Logger, now: opts.Now, started: time.Now(),
		live: make(map[string]*live), rouse: make(chan struct{}, 1),
		closing: make(chan struct{}), stopped: make(chan struct{}),
	}
	if d.timeout == 0 {
		d.timeout = defaultTimeout
	}
	if d.maxOpen == 0 {
		d.maxOpen = defaultMaxOpen
	}
	if d.changed == nil {
		d.changed = func(Record) {}
	}
	if d.logger == nil {
		d.logger = hclog.NewNullLogger()
	}
	if d.now == nil {
		d.now = time.Now
	}
	if err := d.load(ctx); err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	d.stop = stop
	go d.tend(running) // until Close, which waits for it
	return d, nil
}

// Close wakes those who wait and returns when nothing runs any more. Records
// stay as they are. Further calls do nothing.
func (s *Service) Close() error {
	s.close.Do(func() {
		close(s.closing)
		s.stop()
		<-s.stopped
	})
	return nil
}

// load reads the records that an earlier run left open or approved.
func (s *Service) load(ctx context.Context) error {
	rows, err := s.store.Read().QueryContext(ctx,
		`SELECT id, user, state, created, expires, octet_length(content) FROM approvals WHERE state IN ('open', 'approved')`)
	if err != nil {
		return errors.Join(errors.New("read the open approvals"), err)
	}
	defer rows.Close()
	now := s.now()
	for rows.Next() {
		l := &live{answered: make(chan struct{})}
		var state State
		var created, expires int64
		if err := rows.Scan(&l.id, &l.user, &state, &created, &expires, &l.bytes); err != nil {
			return errors.Join(errors.New("read the open approvals"), err)
		}
		l.expires = timeOf(expires)
		l.deadline = s.elapsed() + min(l.expires.Sub(now), l.expires.Sub(timeOf(created)), s.timeout)
		if timeOf(created).After(now) {
			l.deadline = 0 // the clock was set back: nobody knows how old it is
		}
		if state != Open {
			l.wake()
		}
		s.live[l.id] = l
	}
	return rows.Err()
}

// elapsed is the time since the service was made, by a clock that nobody sets.
func (s *Service) elapsed() time.Duration { return time.Since(s.started) }

// expired reports whether the record's time has passed by either clock.
func (s *Service) expired(l *live) bool {
	return !s.now().Before(l.expires) || s.elapsed() >= l.deadline
}

// find returns what is known of a record that is open or approved, or nil.
func (s *Service) find(id string) *live {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[id]
}

// publish tells about a change that is on disk. The caller holds l.mu.
func (s *Service) publish(l *live, r Record) {
	r.withoutContent()
	s.changed(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.State != Open {
		l.wake()
	}
	if !r.State.Closed() {
		return
	}
	delete(s.live, r.ID)
	s.closedCount, s.closedBytes = s.closedCount+1, s.closedBytes+l.bytes
	if s.closedCount >= pruneCount || s.closedBytes >= pruneBytes {
		s.hurry()
	}
}

// wake answers those who wait for the record. The caller holds Service.mu, or is
// the only one who knows l.
func (l *live) wake() {
	if !l.woken {
		l.woken = true
		close(l.answered)
	}
}

// unwritten is the error of a change that the store did not take. cause is
// returned as it is if the caller gave up, or if it is written for the caller.
func unwritten(ctx context.Context, cause error, format string, args ...any) error {
	if ctx.Err() != nil && errors.Is(cause, context.Cause(ctx)) {
		return cause
	}
	if e, ok := errors.AsType[*tool.Error](cause); ok {
		return e
	}
	return tool.Errorf(tool.Unavailable, format, args...).WithCause(cause).WithRetry(0).
		WithHint("the host's state directory cannot be written; an admin finds the reason in the log")
}
