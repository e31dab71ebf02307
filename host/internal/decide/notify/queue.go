package notify

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
)

// maxQueue bounds the messages of a notifier that wait, reminders included. The oldest is dropped.
const maxQueue = 500

// entry is a message that waits.
type entry struct {
	kind     Kind
	record   approval.Record
	due      time.Time
	attempts int
}

// sender delivers the messages of one notifier, one after another.
type sender struct {
	s    *Service
	name string
	wake chan struct{} // holds one
	stop context.CancelFunc
	done chan struct{} // closed when the worker has ended

	mu      sync.Mutex // guards what follows; taken after Service.mu
	current Notifier
	queue   []*entry // the oldest first
	failing bool     // the last message was not delivered
}

// start starts the worker of a notifier.
func (s *Service) start(ctx context.Context, n Notifier) *sender {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	q := &sender{s: s, name: n.Name, current: n, wake: make(chan struct{}, 1), stop: stop, done: make(chan struct{})}
	go q.run(running) // until end, which waits for it
	return q
}

// end stops the worker and returns when it has ended.
func (q *sender) end() {
	q.stop()
	<-q.done
}

func (q *sender) notifier() Notifier {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.current
}

func (q *sender) isFailing() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failing
}

func (q *sender) setFailing(failing bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failing = failing
}

// use replaces the notifier. What could not be delivered is tried again at once.
func (q *sender) use(n Notifier) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.current.same(&n) {
		return
	}
	q.current, q.failing = n, false
	q.queue = slices.DeleteFunc(q.queue, func(e *entry) bool { return !n.covers(e.record.User) })
	for _, e := range q.queue {
		if e.attempts > 0 {
			e.attempts, e.due = 0, q.s.now()
		}
	}
	q.hurry()
}

// hurry wakes the worker.
func (q *sender) hurry() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// changed queues what is to be told about a record that is new or has changed.
func (q *sender) changed(r approval.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.current.covers(r.User) {
		return
	}
	now := q.s.now()
	asked := slices.ContainsFunc(q.queue, func(e *entry) bool { return e.record.ID == r.ID })
	switch {
	case r.State == approval.Open && (asked || len(r.Assents) > 0): // told, or about to be
	case r.State == approval.Open:
		q.add(&entry{kind: Waiting, record: r, due: now})
		if q.current.Remind > 0 {
			q.add(&entry{kind: Reminder, record: r, due: now.Add(q.current.Remind)})
		}
	default:
		q.queue = slices.DeleteFunc(q.queue, func(e *entry) bool { return e.record.ID == r.ID && e.kind != Decided })
		if q.current.Decided && answered(r) {
			q.add(&entry{kind: Decided, record: r, due: now})
		}
	}
	q.hurry()
}

// answered reports whether a record has just got its answer, or will get none. An approved one changes
// once more, when its call runs or its time ends.
func answered(r approval.Record) bool {
	switch r.State {
	case approval.Approved, approval.Rejected:
		return true
	case approval.Expired, approval.Canceled:
		return r.DecidedBy == ""
	case approval.Open, approval.Spent:
	}
	return false
}

// add queues a message. The caller holds q.mu.
func (q *sender) add(e *entry) {
	if len(q.queue) >= maxQueue {
		old := q.queue[0]
		q.queue = slices.Delete(q.queue, 0, 1)
		q.s.logger.Error("a message about an approval is dropped: too many wait", "notify", q.name, "approval", old.record.ID, "type", old.kind)
	}
	q.queue = append(q.queue, e)
}

// run delivers messages until ctx ends.
func (q *sender) run(ctx context.Context) {
	defer close(q.done)
	for ctx.Err() == nil {
		e, n, pause := q.next()
		if e == nil {
			select {
			case <-ctx.Done():
			case <-q.wake:
			case <-time.After(pause):
			}
			continue
		}
		err := q.deliver(ctx, &n, q.s.message(&n, e.kind, e.record))
		if ctx.Err() == nil {
			q.finish(&n, e, err)
		}
	}
}

// idle is how long a worker without messages sleeps.
const idle = time.Hour

// next returns the first message that is due, which stays in the queue, or how long there will be none.
func (q *sender) next() (e *entry, n Notifier, pause time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.s.now()
	pause = idle
	for _, e := range q.queue {
		if !e.due.After(now) {
			return e, q.current, 0
		}
		pause = min(pause, e.due.Sub(now))
	}
	return nil, Notifier{}, pause
}

// finish removes a message that n has delivered or that is given up, and tries another one again later:
// at once if a reload has replaced n.
func (q *sender) finish(n *Notifier, e *entry, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	replaced := !q.current.same(n)
	q.failing = err != nil && !replaced
	i := slices.Index(q.queue, e)
	if i < 0 { // decided meanwhile, or dropped
		if err != nil {
			q.s.logger.Warn("a message about an approval was not delivered", "notify", q.name, "approval", e.record.ID, "type", e.kind, "error", err)
		}
		return
	}
	if err == nil {
		q.queue = slices.Delete(q.queue, i, i+1)
		return
	}
	if replaced {
		return
	}
	e.attempts++
	if e.attempts > len(q.s.backoff) || e.kind != Decided && !q.s.now().Before(e.record.Expires) {
		q.queue = slices.Delete(q.queue, i, i+1)
		q.s.logger.Error("a message about an approval is given up", "notify", q.name, "approval", e.record.ID, "type", e.kind, "attempts", e.attempts, "error", err)
		return
	}
	e.due = q.s.now().Add(q.s.backoff[e.attempts-1])
	q.s.logger.Warn("a message about an approval was not delivered and is tried again", "notify", q.name, "approval", e.record.ID, "type", e.kind, "error", err)
}
