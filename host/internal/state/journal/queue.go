package journal

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// maxQueued and maxQueuedBytes limit the waiting rows. At the limit, callers wait. While the
	// database cannot be written, ends of read_only calls are dropped instead, and a notice says
	// how many.
	maxQueued      = 8192
	maxQueuedBytes = 16 << 20
	// eager is the number of rows that are written without waiting for MaxLag.
	eager = 1024
)

// row is a row that waits to be written.
type row struct {
	call string
	kind Kind
	body []byte
	time time.Time
	done chan error // gets the outcome once; nil if no caller waits
	lost lost       // reported by a notice
}

// queue holds the waiting rows in order. The zero queue is empty.
type queue struct {
	rows   []*row
	bytes  int
	since  time.Time // when the first of them came
	urgent bool      // a caller waits for one of them
	sick   error     // why the last attempt to write failed
	lost   lost      // dropped rows
}

// lost counts dropped rows.
type lost struct {
	rows     int64
	from, to time.Time
}

func (q *queue) full() bool { return len(q.rows) >= maxQueued || q.bytes >= maxQueuedBytes }

// due reports whether the rows should be written now, and otherwise how long to wait.
func (q *queue) due(lag time.Duration) (now bool, wait time.Duration) {
	if q.urgent || len(q.rows) >= eager && q.sick == nil {
		return true, 0
	}
	if q.sick != nil {
		lag = retryEvery
	}
	wait = lag - time.Since(q.since)
	return wait <= 0, wait
}

// Start records that a call is about to run. If it returns nil the row is durable, and an End must
// follow, whatever the outcome of the call. If it returns an error the call must not run. If ctx
// ends before the row is being written, the row is not written; after that Start waits for the
// outcome. (Only if the disk fails during the write may the row of a failed Start appear later, as
// [Journal.Unfinished].)
func (j *Journal) Start(ctx context.Context, r Record) error {
	r.Kind = Start
	if j.checks.integrity() == Changed {
		return fmt.Errorf("record the start of a call: %w", errFoundChanged)
	}
	if err := j.record(ctx, r, true); err != nil {
		return fmt.Errorf("record the start of a call: %w", err)
	}
	return nil
}

// End records how a call ended, with or without a start. A durable End returns when the row is
// durable. Otherwise it returns at once, and the row is durable within [Options.MaxLag]. It waits
// while too many rows wait.
//
// If a durable End fails because the database cannot be written, the row is kept and written as
// soon as possible. Other rows are kept while there is room.
func (j *Journal) End(ctx context.Context, r Record, durable bool) error {
	r.Kind = End
	if err := j.record(ctx, r, durable); err != nil {
		return fmt.Errorf("record the end of a call: %w", err)
	}
	return nil
}

// Change records a change of a plugin whose program has the digest. It returns at once, unless too
// many rows wait.
func (j *Journal) Change(ctx context.Context, plugin, digest, change string) error {
	r := Record{Kind: Change, Plugin: plugin, Digest: digest, Notice: change}
	if err := j.enqueue(ctx, &row{kind: Change, body: encode(r, j.opts.Redact)}); err != nil {
		return fmt.Errorf("record the change of a plugin: %w", err)
	}
	return nil
}

// Connection records a connection, or that it was refused. It returns at once, unless too many rows
// wait.
func (j *Journal) Connection(ctx context.Context, r Record) error {
	r.Kind = Connection
	if err := j.enqueue(ctx, &row{call: r.Call, kind: Connection, body: encode(r, j.opts.Redact)}); err != nil {
		return fmt.Errorf("record a connection: %w", err)
	}
	return nil
}

// ChangeBy records that a person has changed something of the host, such as a token, or was refused
// to. via is the channel of the request, or "". It returns when the row is durable. If it fails
// because the database cannot be written, the row is kept and written as soon as possible.
func (j *Journal) ChangeBy(ctx context.Context, user, via, change string) error {
	r := Record{Kind: Change, User: user, Via: via, Notice: change}
	if err := j.submit(ctx, &row{kind: Change, body: encode(r, j.opts.Redact)}, true); err != nil {
		return fmt.Errorf("record a change: %w", err)
	}
	return nil
}

// record queues a row of a call, and waits for it if it must be durable.
func (j *Journal) record(ctx context.Context, r Record, durable bool) error {
	if r.Call == "" || len(r.Call) > maxText {
		return errors.New("the call has no usable id")
	}
	return j.submit(ctx, &row{call: r.Call, kind: r.Kind, body: encode(r, j.opts.Redact)}, durable)
}

// submit queues a row, and waits for it if it must be durable.
func (j *Journal) submit(ctx context.Context, w *row, durable bool) error {
	var done chan error // w is the writer's once it is queued
	if durable {
		done = make(chan error, 1)
		w.done = done
	}
	if err := j.enqueue(ctx, w); err != nil || !durable {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		// An end or a change is written in any case.
		if w.kind != Start || j.withdraw(w) {
			return context.Cause(ctx)
		}
		return <-done
	}
}

// enqueue appends a row when there is room.
func (j *Journal) enqueue(ctx context.Context, w *row) error {
	for {
		j.mu.Lock()
		_, started := j.open[w.call]
		switch {
		case j.closed:
			j.mu.Unlock()
			return ErrClosed
		case w.kind == Start && started:
			j.mu.Unlock()
			return fmt.Errorf("call %s was started already", w.call)
		case !j.queue.full() || w.kind == End && started:
			wake := j.queue.add(w, j.opts.Now())
			j.mu.Unlock()
			if wake {
				j.signal()
			}
			return nil
		case j.queue.sick != nil && w.kind == End && w.done == nil:
			now := j.opts.Now()
			j.queue.lost.add(lost{rows: 1, from: now, to: now})
			j.mu.Unlock()
			return nil
		case j.queue.sick != nil:
			err := j.queue.sick
			j.mu.Unlock()
			return err
		}
		room := j.room
		j.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// add appends a row, and reports whether to wake the writer.
func (q *queue) add(w *row, now time.Time) (wake bool) {
	w.time = now
	if len(q.rows) == 0 {
		q.since = time.Now()
		wake = true
	}
	q.rows = append(q.rows, w)
	q.bytes += len(w.body)
	q.urgent = q.urgent || w.done != nil
	return wake || w.done != nil || len(q.rows) == eager
}

// withdraw removes a row from the queue, unless it is being written.
func (j *Journal) withdraw(w *row) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, queued := range j.queue.rows {
		if queued == w {
			j.queue.rows = append(j.queue.rows[:i], j.queue.rows[i+1:]...)
			j.queue.bytes -= len(w.body)
			return true
		}
	}
	return false
}

// take removes the next rows to write from the queue, and adds a notice about lost rows before
// them.
func (q *queue) take(now time.Time) []*row {
	n := min(len(q.rows), maxBatch)
	batch := make([]*row, 0, n+1)
	if q.lost.rows > 0 {
		body := encode(Record{Kind: Notice, Notice: q.lost.notice()}, nil)
		batch = append(batch, &row{kind: Notice, time: now, body: body, lost: q.lost})
		q.lost = lost{}
	}
	batch = append(batch, q.rows[:n]...)
	q.keep(q.rows[n:])
	return batch
}

// keep makes rows, which may be part of the waiting rows, the waiting rows.
func (q *queue) keep(rows []*row) {
	before := q.rows
	q.rows = append(q.rows[:0], rows...)
	if len(before) > len(q.rows) {
		clear(before[len(q.rows):])
	}
	q.bytes, q.urgent = 0, false
	for _, w := range q.rows {
		q.bytes += len(w.body)
		q.urgent = q.urgent || w.done != nil
	}
}

// add counts more dropped rows.
func (l *lost) add(more lost) {
	if l.rows == 0 || more.rows > 0 && more.from.Before(l.from) {
		l.from = more.from
	}
	if more.to.After(l.to) {
		l.to = more.to
	}
	l.rows += more.rows
}

func (l *lost) notice() string {
	return fmt.Sprintf("the ends of %d read_only calls between %s and %s are not recorded: the database could not be written",
		l.rows, l.from.UTC().Format(timeForm), l.to.UTC().Format(timeForm))
}
