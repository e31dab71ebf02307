package event

import (
	"context"
	"strconv"
	"strings"
)

// Subscription reads the events of a bus one after the other. It is for one
// goroutine at a time, and needs no end.
type Subscription struct {
	bus *Bus
	// next is the number of the event to give next. lost says that what came
	// before it is not known.
	next uint64
	lost bool
}

// Subscribe returns a subscription to what comes after the event with an id;
// "" means from now on. An id of an earlier run of the host, or one that is
// none, gives a gap and then all events that are kept.
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

// Next returns the next event, and waits for it if need be. Where events are
// missing it returns one of kind [KindGap], whose id continues after the gap.
// The error is the cause of ctx's end.
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

// take returns the next event, or what is closed once there is one.
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

// Position returns the id to continue after: that of the last event that was
// given, or of the newest one when the subscription began.
func (s *Subscription) Position() string { return s.bus.id(s.next - 1) }
