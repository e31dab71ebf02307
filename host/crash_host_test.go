package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/internal/soak"
)

// TestKillUnderLoad kills a host again and again during calls of every kind, with one state
// directory. The journal must contain everything that was acknowledged, with an intact chain,
// and nothing may run twice: no call, no approval, no idempotency key.
// TestApprovedCallRunsOnce and TestKeyedCallRunsOnce show what happens without that
// protection.
func TestKillUnderLoad(t *testing.T) {
	t.Parallel()
	rounds := soak.Rounds(12, 100)
	began := time.Now()
	h := serve(t, writeConfig(t, listening+writing+counting))
	l := &load{host: h, ended: map[string]ended{}, sent: map[string]int{}}
	for round := range rounds {
		if round > 0 {
			h.restart(t)
		}
		l.round(t, 1+rand.N(40))
		if t.Failed() {
			return
		}
	}
	h.restart(t)
	if out := h.ok(t, "journal", "verify"); !strings.Contains(out, "unchanged") {
		t.Errorf("journal verify prints %s", out)
	}
	l.check(t, rowsByCall(t, h))
	t.Logf("%d rounds, %d outcomes, %d calls under which the host was killed, %d effects in %v",
		rounds, len(l.ended), l.lost, len(h.counted()), time.Since(began).Round(time.Second))
}

// load makes calls and records their outcomes.
type load struct {
	host *host

	mu    sync.Mutex // guards the fields below
	ended map[string]ended
	sent  map[string]int // how often each note was sent
	again []note         // notes without an outcome, to be sent again
	lost  int            // calls without an outcome
	next  int
}

// ended is an outcome that a caller received.
type ended struct {
	note   note
	status string
}

// note is the trace that a call leaves if it runs.
type note struct {
	tool, text string
	keyed      bool // the text is its idempotency key
}

// round runs callers and an approver until enough calls have ended, then kills the host.
func (l *load) round(t *testing.T, enough int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	done := make(chan struct{})
	var working sync.WaitGroup
	count := make(chan struct{})
	for worker := range mix {
		working.Go(func() { // ends with the host
			for l.call(worker) {
				select {
				case count <- struct{}{}:
				case <-done:
				}
			}
		})
	}
	approver := l.host.approver(t)
	working.Go(func() { decideAll(ctx, approver) }) // ends with the host
	for ; enough > 0; enough-- {
		select {
		case <-count:
		case <-ctx.Done():
			t.Errorf("still not: %d more calls have ended", enough)
			enough = 0
		}
	}
	l.host.kill()
	close(done)
	working.Wait()
}

// call makes a worker's next call and reports whether it has an outcome.
func (l *load) call(worker int) bool {
	n := l.take(worker)
	args, header := map[string]any{"note": n.text}, []string{"Toolhost-Session", fmt.Sprint("s", worker)}
	if n.keyed {
		header = append(header, "Idempotency-Key", n.text)
	}
	if n.tool == "read_file" {
		args = map[string]any{"path": "hello.txt"}
	}
	status, text, err := l.host.send("POST", "/v1/calls", l.host.token, asJSON(map[string]any{"tool": n.tool, "arguments": args}), header...)
	var o client.Outcome
	if err == nil {
		err = json.Unmarshal([]byte(text), &o)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || status != 200 {
		l.lost++
		if n.keyed || n.tool == "probe_count" { // safe to send again
			l.again = append(l.again, n)
		}
		return false
	}
	l.ended[o.ToolCallID] = ended{n, o.Status}
	return true
}

// take returns a worker's next call: one without an outcome, or a new one.
func (l *load) take(worker int) (n note) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.sent[n.text]++ }()
	n = mix[worker]
	for i, earlier := range l.again {
		if earlier.tool == n.tool && earlier.keyed == n.keyed {
			l.again = slices.Delete(l.again, i, i+1)
			return earlier
		}
	}
	l.next++
	n.text = fmt.Sprintf("n%d", l.next)
	return n
}

// mix is the sequence of calls of each worker.
var mix = []note{
	{tool: "read_file"},
	{tool: "probe_tally"},
	{tool: "probe_tally", keyed: true},
	{tool: "probe_tally", keyed: true},
	{tool: "probe_count"},
	{tool: "probe_count", keyed: true},
}

// decideAll decides all questions and rejects one in five.
func decideAll(ctx context.Context, c *client.Client) {
	for {
		open, err := c.Approvals(ctx, client.ApprovalFilter{States: []approval.State{approval.Open}, Wait: patience})
		if err != nil {
			return
		}
		for _, r := range open {
			decide := c.Approve
			if rand.N(5) == 0 {
				decide = c.Reject
			}
			_, _ = decide(ctx, r.ID, client.Answer{}.Seen(r.Record)) // the loop ends with the host
		}
	}
}

// check compares the outcomes that callers received with the journal and with the traces of
// the calls.
func (l *load) check(t *testing.T, rows map[string][]journal.Record) {
	t.Helper()
	ran := map[string]int{}    // by note
	unique := map[string]int{} // calls and approvals
	for _, line := range l.host.counted() {
		fields := strings.Split(line, ",")
		if len(fields) != 3 {
			t.Fatalf("the trace has a line %q", line)
		}
		unique[fields[0]]++
		ran[fields[2]]++
		if fields[1] != "-" {
			unique[fields[1]]++
		}
		if r := rows[fields[0]]; len(r) == 0 || r[0].Kind != journal.Start || r[0].Approval != strings.Trim(fields[1], "-") {
			t.Errorf("call %s ran by approval %s, the journal has %+v", fields[0], fields[1], r)
		}
	}
	for id, n := range unique {
		if n > 1 {
			t.Errorf("%s ran %d times", id, n)
		}
	}
	kinds := map[string]int{}
	for id, e := range l.ended {
		kinds[fmt.Sprint(e.note.tool, e.note.keyed, e.status)]++
		r := rows[id]
		if len(r) == 0 && (e.note.tool == "read_file" || e.note.keyed && l.sent[e.note.text] > 1) {
			continue // changed nothing, or repeats a recorded result: its row may follow within 50 ms
		}
		if len(r) == 0 || r[len(r)-1].Kind != journal.End || r[len(r)-1].Status != e.status {
			t.Errorf("call %s ended with %s, the journal has %+v", id, e.status, r)
		}
		if n := ran[e.note.text]; e.status == client.Success && n == 0 && e.note.tool != "read_file" || e.status == client.Rejected && n > 0 && l.sent[e.note.text] == 1 {
			t.Errorf("call %s ended with %s and ran %d times", id, e.status, n)
		}
		if n := ran[e.note.text]; e.note.keyed && n > 1 {
			t.Errorf("the call with key %s ran %d times", e.note.text, n)
		}
	}
	for _, kind := range []string{
		"read_filefalsesuccess", "probe_tallyfalsesuccess", "probe_tallytruesuccess",
		"probe_countfalsesuccess", "probe_counttruesuccess", "probe_countfalserejected",
	} {
		if kinds[kind] == 0 && !testing.Short() {
			t.Errorf("no call ended as %s: %v", kind, kinds)
		}
	}
	t.Logf("outcomes: %v", kinds)
}

// rowsByCall returns the whole journal by call, in order. Each call has at most one start and
// one end.
func rowsByCall(t *testing.T, h *host) map[string][]journal.Record {
	t.Helper()
	byCall := map[string][]journal.Record{}
	approver := h.approver(t)
	for after := int64(0); ; {
		rows, err := approver.Journal(t.Context(), journal.Query{After: after, Limit: 1000, OldestFirst: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) == 0 {
			return byCall
		}
		for _, r := range rows {
			for _, earlier := range byCall[r.Call] {
				if earlier.Kind == r.Kind || earlier.Kind == journal.End {
					t.Errorf("row %d follows %d: %+v", r.Seq, earlier.Seq, r)
				}
			}
			byCall[r.Call] = append(byCall[r.Call], r)
			after = r.Seq
		}
	}
}
