// Package approval asks people whether a call may run, and keeps their standing
// answers, the grants. A question is a durable record that is bound to one exact
// call: its approval lets that call run once, before it expires, and no other call.
// The first decision wins; later ones get an error with that decision.
//
// A change is written to disk before it takes effect. When the disk cannot be
// written, no question is asked, nothing is decided and no call runs.
package approval

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// defaultTimeout is how long a question waits for an answer.
	defaultTimeout = 10 * time.Minute
	// defaultMaxOpen bounds the open questions of a user.
	defaultMaxOpen = 20
)

// Options configure a [Service].
type Options struct {
	// Store keeps the records; required.
	Store *store.Store
	// Grants keeps the standing answers; required.
	Grants *Grants
	// Timeout is how long after its creation a record can be decided and then spent;
	// 0 means 10 minutes.
	Timeout time.Duration
	// MaxOpen bounds the open records of one user; 0 means 20.
	MaxOpen int
	// Changed is called after each durable change of a record, in the order of the
	// changes, with the record without its arguments and preview. It must return at
	// once and must not call the service. It may be nil.
	Changed func(Record)
	// Logger gets the errors that no caller sees; nil means none.
	Logger hclog.Logger
	// Now is the wall clock; nil means [time.Now].
	Now func() time.Time
}

// Service keeps the questions and their answers. Its methods may be called from any
// goroutine; they wait for the disk.
type Service struct {
	store   *store.Store
	grants  *Grants
	timeout time.Duration
	maxOpen int
	changed func(Record)
	logger  hclog.Logger
	now     func() time.Time
	started time.Time // with a monotonic clock reading

	mu          sync.Mutex // guards what follows and the marked fields of live; taken after live.mu
	live        map[string]*live
	closedCount int // since records were last removed
	closedBytes int

	rouse   chan struct{} // wakes tend; holds one
	closing chan struct{} // closed by Close
	stop    context.CancelFunc
	stopped chan struct{} // closed when tend has ended
	close   sync.Once
}

// live is the state in memory of a record that is open or approved.
type live struct {
	id, user string
	bytes    int // of arguments and preview
	// mu orders the changes of the record. It is held while a change is written and
	// Changed is called, and taken before Service.mu.
	mu sync.Mutex

	expires  time.Time     // by the wall clock
	deadline time.Duration // by the monotonic clock, since Service.started

	answered chan struct{} // closed when the record is no longer open
	failure  error         // why the end of the record could not be written; guarded by Service.mu
	claimed  bool          // an operation waits for it; guarded by Service.mu
	woken    bool          // answered is closed; guarded by Service.mu
}

// errClosed ends the waits when the host stops.
var errClosed = tool.Errorf(tool.Unavailable, "the host is stopping").WithHint("call again later: the approval is kept")

// New returns a service with the records of earlier runs. It closes records as
// expired whose time has passed, or which were created in the future, since the
// clock was set back. ctx bounds New only; Close the service before the store and the
// grants.
func New(ctx context.Context, opts Options) (*Service, error) {
	switch {
	case opts.Store == nil:
		return nil, errors.New("approvals: no store is given")
	case opts.Grants == nil:
		return nil, errors.New("approvals: no grants are given")
	case opts.Timeout < 0 || opts.MaxOpen < 0:
		return nil, errors.New("approvals: the timeout and the number of open approvals must not be negative")
	}
	s := &Service{
		store: opts.Store, grants: opts.Grants, timeout: opts.Timeout, maxOpen: opts.MaxOpen,
		changed: opts.Changed, logger: opts.Logger, now: opts.Now, started: time.Now(),
		live: make(map[string]*live), rouse: make(chan struct{}, 1),
		closing: make(chan struct{}), stopped: make(chan struct{}),
	}
	if s.timeout == 0 {
		s.timeout = defaultTimeout
	}
	if s.maxOpen == 0 {
		s.maxOpen = defaultMaxOpen
	}
	if s.changed == nil {
		s.changed = func(Record) {}
	}
	if s.logger == nil {
		s.logger = hclog.NewNullLogger()
	}
	if s.now == nil {
		s.now = time.Now
	}
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	go s.tend(running) // until Close, which waits for it
	return s, nil
}

// Close ends all waits and returns when nothing is running. Records do not change.
// Further calls do nothing.
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
			l.deadline = 0 // the clock was set back: the age is unknown
		}
		if state != Open {
			l.wake()
		}
		s.live[l.id] = l
	}
	return rows.Err()
}

// elapsed returns the time since the service was created, by the monotonic clock.
func (s *Service) elapsed() time.Duration { return time.Since(s.started) }

// expired reports whether the record's time has passed by either clock.
func (s *Service) expired(l *live) bool {
	return !s.now().Before(l.expires) || s.elapsed() >= l.deadline
}

// find returns the state of a record that is open or approved, or nil.
func (s *Service) find(id string) *live {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[id]
}

// publish reports a change that is on disk. The caller holds l.mu.
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

// wake ends the waits for the record. The caller holds Service.mu, or nothing else
// refers to l.
func (l *live) wake() {
	if !l.woken {
		l.woken = true
		close(l.answered)
	}
}

// unwritten returns the error of a change that the store did not write. It returns
// cause unchanged if the caller gave up, or if cause is an error for the caller.
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

// Wait blocks until the record is no longer open, and returns it without its arguments and
// preview. If ctx ends first, the error is ctx's cause, and the record stays open. If the record has expired but
// that could not be written, the error says so.
func (s *Service) Wait(ctx context.Context, id string) (Record, error) {
	l := s.find(id)
	if l == nil {
		r, err := s.read(ctx, id, false)
		if err == nil && r.State == Open {
			_, err = s.tooLate(ctx, id)
		}
		return r, err
	}
	select {
	case <-l.answered:
	case <-s.closing:
		if s.leave(l) {
			return Record{}, errClosed
		}
	case <-ctx.Done():
		return Record{}, context.Cause(ctx)
	}
	s.mu.Lock()
	err := l.failure
	s.mu.Unlock()
	if err != nil {
		return Record{}, err
	}
	return s.read(ctx, id, false)
}

// leave ends the claim of an operation that waits no longer, so that the next call like it is told
// of a rejection that comes now. It returns false if the record has been answered, which is then
// for that operation.
func (s *Service) leave(l *live) bool {
	l.mu.Lock() // a decision that is being written comes first
	defer l.mu.Unlock()
	select {
	case <-l.answered:
		return false
	default:
		s.unclaim(l)
		return true
	}
}

// Get returns a record to any caller; see [Service.Find].
func (s *Service) Get(ctx context.Context, id string) (Record, error) { return s.read(ctx, id, true) }

// OfCall returns the latest record about a user's call, without its arguments and
// preview. If there is none, the error is [tool.NotFound].
func (s *Service) OfCall(ctx context.Context, user, call string) (Record, error) {
	const which = `WHERE user = ? AND CASE WHEN json_valid(question) THEN json_extract(question, '$.call') END = ?
		ORDER BY id DESC LIMIT 1` // a damaged row must not hide the others
	records, err := s.readAll(ctx, which, []any{user, call})
	if err != nil {
		return Record{}, err
	}
	if len(records) == 0 {
		return Record{}, tool.Errorf(tool.NotFound, "No approval was asked for call %s", tool.VisibleName(excerpt.Of(call, maxName)))
	}
	return records[0], nil
}

// Find returns a record that the caller may see as an approver or an admin. For any
// other record the error is [tool.NotFound], as for one that does not exist.
func (s *Service) Find(ctx context.Context, id string, by auth.Caller) (Record, error) {
	r, err := s.read(ctx, id, false)
	if err == nil && !r.VisibleTo(by) {
		err = unknown(id)
	}
	if err != nil {
		return Record{}, err
	}
	return s.read(ctx, id, true)
}
