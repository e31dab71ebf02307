//go:build !race

package approval_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/tool"
)

// These start processes, or are of one goroutine: the race detector only makes them slow.

func TestKilledAtAnyMoment(t *testing.T) {
	dir := t.TempDir()
	before := open(t, dir, approval.Options{})
	q := question(`{}`)
	q.Tool = "few"
	record := before.ask(t, q)
	if _, err := before.service.Decide(t.Context(), before.seeing(t, approval.Decision{ID: record.ID, By: approver("ada"), Approve: true, Grant: &approval.Terms{Uses: fewUses}})); err != nil {
		t.Fatal(err)
	}
	if err := before.service.Spend(t.Context(), record.ID, "tc_1", q.Binding()); err != nil {
		t.Fatal(err)
	}
	before.close(t)
	before.service, before.grants = nil, nil
	var said []string
	rounds := soak.Rounds(15, 50)
	for range rounds {
		round(t, dir, false, 1+rand.IntN(60), &said)
	}
	r := open(t, dir, approval.Options{})
	seen := make(map[string]int)
	asked := make(map[string]int)
	for _, line := range said {
		what, id, _ := strings.Cut(line, " ")
		if id == fewCalls {
			continue
		}
		got, err := r.service.Get(t.Context(), id)
		if err != nil {
			t.Fatalf("%s: Get = %v", line, err)
		}
		seen[what]++
		if what == "asked" {
			asked[id]++
		}
		switch {
		case what == "rejected" && got.State != approval.Rejected,
			what == "approved" && got.State != approval.Approved && got.State != approval.Spent,
			what == "ran" && got.State != approval.Spent:
			t.Errorf("%s: it is %s now", line, got.State)
		}
	}
	for _, what := range []string{"asked", "approved", "rejected", "ran"} {
		if seen[what] < rounds {
			t.Errorf("%q was said %d times in %d rounds: the rounds are too short", what, seen[what], rounds)
		}
	}
	if len(asked) == seen["asked"] {
		t.Error("no record of an earlier round was taken up again")
	}
	ran := runs(t, dir)
	if ran[fewCalls] < fewUses/2 {
		t.Errorf("of %d uses of a grant %d calls came, so the test shows little", fewUses, ran[fewCalls])
	}
	for id, n := range ran {
		if most := map[bool]int{true: fewUses, false: 1}[id == fewCalls]; n > most {
			t.Errorf("%s ran %d times, want at most %d", id, n, most)
		}
	}
	if _, covered := r.covering("ada", "p", "put"); !covered {
		t.Error("a grant that was acknowledged is not there")
	}
	t.Logf("said: %v, %d of them again", seen, seen["asked"]-len(asked))
}

// A host that runs the call first and writes that down afterwards runs it again.
func TestKilledWithoutTheGuard(t *testing.T) {
	dir := t.TempDir()
	var said []string
	round(t, dir, true, -1, &said)
	round(t, dir, true, -1, &said)
	most := 0
	for _, n := range runs(t, dir) {
		most = max(most, n)
	}
	if most < 2 {
		t.Errorf("no call ran twice: %s", mustJSON(said))
	}
}

// Of closed records the newest thousand are kept.
func TestFewClosedRecordsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, t.TempDir(), approval.Options{})
		count := func() (n int) {
			t.Helper()
			if err := r.store.Read().QueryRowContext(t.Context(), "SELECT count(*) FROM approvals").Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		var first string
		for n := range 1400 {
			id := r.ask(t, question(fmt.Sprintf(`{"n":%d}`, n))).ID
			if n == 0 {
				first = id
			}
			if err := r.service.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := count(); n > 1200 {
			t.Errorf("%d records are kept while it runs, want at most 1200", n)
		}
		wait(2 * time.Hour)
		synctest.Wait()
		if n := count(); n != 1000 {
			t.Errorf("%d records are kept, want 1000", n)
		}
		if _, err := r.service.Get(t.Context(), first); code(err) != tool.NotFound {
			t.Errorf("Get of the oldest = %v, want %s", err, tool.NotFound)
		}
	})
}

// Excess input is counted to the byte.
func TestShowLargeText(t *testing.T) {
	checkShow(t, strings.Repeat("x\u200b\n", 50_000))
	checkShow(t, strings.Repeat("é", 200_000))
}
