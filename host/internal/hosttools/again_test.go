package hosttools_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// restarted returns a host over the state of one that has asked about a call
// and was stopped, and the ids of both.
func restarted(t *testing.T, name, text string) (h *host, call, question string) {
	t.Helper()
	dir := t.TempDir()
	h = open(t, options{dir: dir})
	call, question = h.ask(t, name, text)
	h.stop()
	return open(t, options{dir: dir}), call, question
}

// TestWaitAfterARestart collects calls that an earlier host has asked about. The
// text has characters that JSON may write in two ways.
func TestWaitAfterARestart(t *testing.T) {
	const text = "<a href=\"x\">&\u2028"
	for _, by := range []string{"approval", "call"} {
		for _, when := range []string{"before", "after"} { // the decision, against the wait
			t.Run("by "+by+", decided "+when, func(t *testing.T) {
				h, call, question := restarted(t, "add", text)
				id := map[string]string{"approval": question, "call": call}[by]
				if when == "before" {
					h.decide(t, question, true, "")
				}
				var waits sync.WaitGroup
				for range 8 { // at once: the call is made again once
					waits.Go(func() {
						if got := h.wait(t, ann, id); got.Error != nil || !strings.HasPrefix(got.Text(), `added {"text":"<a href`) {
							t.Errorf("approval_wait = %q, %v", got.Text(), got.Error)
						}
					})
				}
				if when == "after" {
					eventually(t, "they wait", func() bool { return h.own.Waiting("ann") == 8 })
					h.decide(t, question, true, "")
				}
				waits.Wait()
				if h.calls() != 1 {
					t.Errorf("the call ran %d times, want once", h.calls())
				}
				if got := h.wait(t, ann, question); got.Error != nil || h.calls() != 1 {
					t.Errorf("once more approval_wait = %v, and %d ran", got.Error, h.calls())
				}
				select {
				case another := <-h.questions:
					t.Errorf("another question %s was asked", another)
				default:
				}
			})
		}
	}
}

// TestSameCallAfterARestart makes the same call itself while approval_wait waits
// for it: both get the one result.
func TestSameCallAfterARestart(t *testing.T) {
	h, _, question := restarted(t, "add", "a")
	f := h.Start(t.Context(), request(ann, catalog.ApprovalWait, map[string]any{"id": question}))
	defer f.Release()
	eventually(t, "the call was made again", func() bool {
		flight, ok := h.Asking(question, ann)
		if ok {
			flight.Release()
		}
		return ok
	})
	f.Cancel()
	if got := h.result(t, f).Error; got == nil || got.Code != tool.Canceled {
		t.Fatalf("a canceled approval_wait = %v", got)
	}
	h.decide(t, question, true, "")
	if got := h.call(t, ann, "add", map[string]any{"text": "a"}).Result; got.Error != nil || h.calls() != 1 {
		t.Errorf("the same call = %v, and %d ran, want once", got.Error, h.calls())
	}
}

// TestRejectedAfterARestart is told that a person refused.
func TestRejectedAfterARestart(t *testing.T) {
	h, _, question := restarted(t, "add", "a")
	f := h.Start(t.Context(), request(ann, catalog.ApprovalWait, map[string]any{"id": question}))
	defer f.Release()
	eventually(t, "the call was made again", func() bool {
		flight, ok := h.Asking(question, ann)
		if ok {
			flight.Release()
		}
		return ok
	})
	h.decide(t, question, false, "wrong file")
	wantError(t, "approval_wait", h.result(t, f).Error, tool.Rejected, "User rejected the operation", "wrong file")
}

// TestWhatCannotBeMadeAgain says plainly what the caller is to do.
func TestWhatCannotBeMadeAgain(t *testing.T) {
	t.Run("secret arguments", func(t *testing.T) {
		h, _, question := restarted(t, "tell", "swordfish")
		wantError(t, "approval_wait", h.wait(t, ann, question).Error, tool.Conflict, "did not keep the secret arguments", "make the same call of tell again yourself")
		h.decide(t, question, true, "")
		if got := h.call(t, ann, "tell", map[string]any{"text": "swordfish"}).Result; got.Error != nil || h.calls() != 1 {
			t.Errorf("the same call made again = %v, and %d ran", got.Error, h.calls())
		}
	})
	t.Run("another client", func(t *testing.T) {
		h, _, question := restarted(t, "add", "a")
		other := ann
		other.Client = "another"
		wantError(t, "approval_wait", h.wait(t, other, question).Error, tool.Conflict, "of the client test", "asked anew")
		if h.calls() != 0 {
			t.Errorf("%d calls ran", h.calls())
		}
	})
	t.Run("another user", func(t *testing.T) {
		h, call, question := restarted(t, "add", "a")
		other := ann
		other.User = "bob"
		for _, id := range []string{call, question} {
			wantError(t, "approval_wait", h.wait(t, other, id).Error, tool.NotFound)
		}
	})
}

// TestClosedQuestions says how questions ended whose calls are gone.
func TestClosedQuestions(t *testing.T) {
	t.Run("rejected", func(t *testing.T) {
		h, call, question := restarted(t, "add", "a")
		h.decide(t, question, false, "wrong file")
		for _, id := range []string{call, question} {
			wantError(t, "approval_wait", h.wait(t, ann, id).Error, tool.Rejected, "was rejected by ann over cli", "wrong file")
		}
	})
	t.Run("canceled", func(t *testing.T) {
		h, _, question := restarted(t, "add", "a")
		must(t, h.desk.Cancel(t.Context(), question))
		wantError(t, "approval_wait", h.wait(t, ann, question).Error, tool.Canceled, "was canceled", "if it is still wanted")
	})
	t.Run("used", func(t *testing.T) {
		h, _, question := restarted(t, "add", "a")
		h.decide(t, question, true, "")
		ran := h.call(t, ann, "add", map[string]any{"text": "a"})
		wantError(t, "approval_wait", h.wait(t, ann, question).Error, tool.Conflict, "was used already, by call "+ran.ID, "see what it has changed")
	})
}

// TestExpiredQuestion waits for a question that nobody answers in time, in this
// run of the host and in the next.
func TestExpiredQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		h := open(t, options{dir: dir, patience: time.Hour})
		_, question := h.ask(t, "add", "a")
		wantError(t, "approval_wait", h.wait(t, ann, question).Error, tool.Rejected, "nobody approved the operation in time")
		h.stop()
		h = open(t, options{dir: dir})
		wantError(t, "after a restart approval_wait", h.wait(t, ann, question).Error, tool.Rejected, "has expired", "make the call again")
		h.stop()
	})
}
