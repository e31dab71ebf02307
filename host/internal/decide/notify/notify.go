// Package notify tells people elsewhere that a call waits for them: by a signed webhook, or by a
// command of the administrator. A message says what waits and where to look; it never carries a
// decision, and its receiver can make none with it.
//
// Nothing here delays a call: messages wait in bounded queues, and one that cannot be delivered is
// tried again a few times, then given up, with a line in the log.
package notify

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Notifier is one way to tell people: a webhook or a command.
type Notifier struct {
	// Name is unique among the notifiers.
	Name string
	// Webhook is the URL that gets a POST of each message, signed with Secret. "" means that
	// Command gets the message on its standard input.
	Webhook string
	Secret  Secret
	Command []string
	// Users are the users about whose calls it tells; empty means all.
	Users []string
	// Details adds the summary of the approval, which contains values of arguments.
	Details bool
	// Remind is how long after the first message another one follows if the call still waits; 0
	// means never.
	Remind time.Duration
	// Decided also tells how a question was answered, or that it expired without an answer.
	Decided bool
}

// covers reports whether a notifier tells about the calls of a user.
func (n *Notifier) covers(user string) bool {
	return len(n.Users) == 0 || slices.Contains(n.Users, user)
}

// Options configure a [Service].
type Options struct {
	Notifiers []Notifier
	// Link returns the address of the page about an approval; "" if the host has none. It may be nil.
	Link func(id string) string
	// Backoff are the pauses between the attempts to deliver a message; nil means 1 s, 5 s, 30 s
	// and 2 min.
	Backoff []time.Duration
	// Logger is required.
	Logger hclog.Logger
	// Now is the wall clock; nil means [time.Now].
	Now func() time.Time
}

// Service delivers messages. Its methods may be called from any goroutine.
type Service struct {
	link    func(id string) string
	backoff []time.Duration
	logger  hclog.Logger
	now     func() time.Time

	mu      sync.Mutex // guards what follows
	closed  bool
	senders []*sender
}

// New returns a service. Close must follow. ctx does not bound it.
func New(ctx context.Context, opts Options) *Service {
	s := &Service{link: opts.Link, backoff: opts.Backoff, logger: opts.Logger, now: opts.Now}
	if s.link == nil {
		s.link = func(string) string { return "" }
	}
	if s.backoff == nil {
		s.backoff = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute}
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.Use(ctx, opts.Notifiers)
	return s
}

// Use replaces the notifiers. A notifier keeps the messages that the former one of its name has not
// delivered, and tries them at once. Those of other former notifiers are dropped. ctx does not bound
// the deliveries.
func (s *Service) Use(ctx context.Context, notifiers []Notifier) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	var next []*sender
	for _, n := range notifiers {
		if i := s.index(n.Name); i >= 0 {
			s.senders[i].use(n)
			next = append(next, s.senders[i])
			continue
		}
		next = append(next, s.start(ctx, n))
	}
	for _, old := range s.senders {
		if !slices.Contains(next, old) {
			old.end()
		}
	}
	s.senders = next
}

func (s *Service) index(name string) int {
	return slices.IndexFunc(s.senders, func(q *sender) bool { return q.name == name })
}

// Close ends all deliveries. Messages that were not delivered are dropped: the next host tells of
// questions that are still open.
func (s *Service) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, q := range s.senders {
		q.stop() // all at once
	}
	for _, q := range s.senders {
		q.end()
	}
	return nil
}

// Changed notes a record that is new or has changed. It returns at once.
func (s *Service) Changed(r approval.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.senders {
		q.changed(r)
	}
}

// Problems returns a line about each notifier whose last message was not delivered. It names no
// addresses, since the health of the host needs no credential.
func (s *Service) Problems() (problems []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.senders {
		if q.isFailing() {
			problems = append(problems, fmt.Sprintf("notify %q fails: its messages about waiting calls do not arrive; the log says why", q.name))
		}
	}
	return problems
}

// Test delivers a test message now, in one attempt. Its error is for an admin.
func (s *Service) Test(ctx context.Context, name string) error {
	s.mu.Lock()
	i := s.index(name)
	var names []string
	for _, q := range s.senders {
		names = append(names, q.name)
	}
	var q *sender
	if i >= 0 {
		q = s.senders[i]
	}
	s.mu.Unlock()
	switch {
	case q == nil && len(names) == 0:
		return tool.Errorf(tool.NotFound, "The configuration has no notify block")
	case q == nil:
		return tool.Errorf(tool.NotFound, "No notifier %s", tool.VisibleName(excerpt.Of(name, maxName))).WithHint("there are: %v", names)
	}
	n := q.notifier()
	if err := q.deliver(ctx, &n, s.test(&n)); err != nil {
		return tool.Errorf(tool.Unavailable, "The test message of notifier %s was not delivered: %v", name, err)
	}
	q.setFailing(false)
	return nil
}

// same reports whether two notifiers deliver in the same way.
func (n *Notifier) same(other *Notifier) bool { return reflect.DeepEqual(n, other) }
