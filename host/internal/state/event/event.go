// Package event publishes what happens in the host. Publishing is cheap and never waits; data
// without a reader is never encoded. Each watcher reads the kept events at its own pace. A watcher
// that falls behind, or returns after a restart of the host, misses the oldest events and is told
// so.
package event

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/sdk/tool"
)

// The most that a bus keeps.
const (
	maxEvents = 2048
	maxBytes  = 8 * tool.MiB
)

// Event is something that happened in the host.
type Event struct {
	// ID identifies the event, to continue after it. Ids grow within one run of the
	// host.
	ID   string
	Kind Kind
	// User is the user that the event belongs to; "" if it belongs to none.
	User string
	Data Data

	text *text
}

// text is the JSON form of an event's data. It is made when it is first needed.
type text struct {
	once sync.Once
	json []byte
	err  error
}

// WithoutResult returns the event without the result of a call, which only the event's user may
// read.
func (e Event) WithoutResult() Event {
	if result, ok := e.Data.(ToolResult); ok {
		result.Result, result.ResultBytes = nil, 0
		e.Data, e.text = result, nil
	}
	return e
}

// JSON returns the data as JSON. Callers share the bytes and must not change them.
func (e Event) JSON() ([]byte, error) {
	if e.text == nil { // of one watcher
		return json.Marshal(e.Data)
	}
	e.text.once.Do(func() { e.text.json, e.text.err = json.Marshal(e.Data) })
	return e.text.json, e.text.err
}

// Bus keeps the newest events, at most 2,048 and 8 MiB. Its methods may be called from any
// goroutine.
type Bus struct {
	boot string

	mu   sync.Mutex // guards everything below
	ring [maxEvents]kept
	// The numbers of the oldest event that is kept and of the next one. Events
	// are numbered from 1 on.
	oldest, next uint64
	bytes        int
	changed      chan struct{} // closed at the next event; nil if none waits
}

// kept is an event in the ring.
type kept struct {
	user string
	data Data
	text *text
	size int
}

// NewBus returns an empty bus.
func NewBus() *Bus {
	var boot [6]byte
	_, _ = rand.Read(boot[:]) // never fails
	return &Bus{boot: hex.EncodeToString(boot[:]), oldest: 1, next: 1}
}

// Publish adds an event of a user; "" means no particular user. Data that is too large for an event
// is omitted. The caller must not change the data afterwards.
func (b *Bus) Publish(user string, data Data) {
	data, size := data.fit()
	size += len(user) + overhead
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.next-b.oldest >= maxEvents || b.next > b.oldest && b.bytes+size > int(maxBytes) {
		dropped := &b.ring[b.oldest%maxEvents]
		b.bytes -= dropped.size
		*dropped = kept{}
		b.oldest++
	}
	b.ring[b.next%maxEvents] = kept{user: user, data: data, text: &text{}, size: size}
	b.bytes += size
	b.next++
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// overhead is the size of an event without its data, in bytes. Its JSON form for
// watchers may be as large as the data.
const overhead = 200

func (b *Bus) id(number uint64) string { return b.boot + "-" + strconv.FormatUint(number, 10) }

// Subscription reads the events of a bus in order. Only one goroutine may use it at a time. It does
// not have to be closed.
type Subscription struct {
	bus *Bus
	// next is the number of the next event. lost reports that the events before it
	// are not known.
	next uint64
	lost bool
}

// Subscribe returns a subscription to the events after the one with an id; "" means new events
// only. An invalid id, or one of an earlier run of the host, gives a gap and then all kept events.
func (b *Bus) Subscribe(after string) *Subscription {
	b.mu.Lock()
	defer b.mu.Unlock()
	if after == "" {
		return &Subscription{bus: b, next: b.next}
	}
	boot, digits, _ := strings.Cut(after, "-")
	number, err := strconv.ParseUint(digits, 10, 64)
	if boot != b.boot || err != nil || number >= b.next {
		return &Subscription{bus: b, next: b.oldest, lost: true}
	}
	return &Subscription{bus: b, next: number + 1}
}

// Next waits for the next event. For missing events, it returns one of kind [KindGap],
// whose id continues after the gap. The error is the cause of ctx's end.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return Event{}, err
		}
		e, changed := s.take()
		if changed == nil {
			return e, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// take returns the next event, or a channel that is closed when there is one.
func (s *Subscription) take() (Event, <-chan struct{}) {
	b := s.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.lost || s.next < b.oldest {
		gap := Gap{}
		if !s.lost {
			missed := b.oldest - s.next
			gap.Missed = &missed
		}
		s.lost = false
		s.next = max(s.next, b.oldest)
		return Event{ID: b.id(s.next - 1), Kind: KindGap, Data: gap}, nil
	}
	if s.next == b.next {
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		return Event{}, b.changed
	}
	at := &b.ring[s.next%maxEvents]
	e := Event{ID: b.id(s.next), Kind: at.data.kind(), User: at.user, Data: at.data, text: at.text}
	s.next++
	return e, nil
}

// Position returns the id to continue after: that of the last returned event, or of the newest one
// when the subscription began.
func (s *Subscription) Position() string { return s.bus.id(s.next - 1) }
