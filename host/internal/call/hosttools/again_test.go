package hosttools_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// restarted returns a host that was restarted after it asked about a call, and the ids of the
// call and the question.
func restarted(t *testing.T, name, text string) (h *host, call, question string) {
	t.Helper()
	dir := t.TempDir()
	h = open(t, options{dir: dir})
	call, question = h.ask(t, name, text)
	h.stop()
	return open(t, options{dir: dir}), call, question
}

// TestWaitAfterARestart waits for calls that the host asked about before a restart. The text
// contains characters that JSON can encode in two ways.
func TestWaitAfterARestart(t *testing.T) {
	const text = "<a href=\"x\">&\u2028"
	for _, by := range []string{"approval", "call"} {
		for _, when := range []string{"before", "after"} { // when the decision arrives, relative to the wait
			t.Run("by "+by+", decided "+when, func(t *testing.T) {
				h, call, question := restarted(t, "add", text)
				id := map[string]string{"approval": question, "call": call}[by]
				if when == "before" {
					h.decide(t, question, true, "")
				}
				var waits sync.WaitGroup
				for range 8 { // concurrent waits repeat the call only once
					waits.Go(func() {
						if got := h.wait(t, ann, id); got.Error != nil || !strings.HasPrefix(got.Text(), `added {"text":"<a href`) {
							t.Errorf("call_wait = %q, %v", got.Text(), got.Error)
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
					t.Errorf("once more call_wait = %v, and %d ran", got.Error, h.calls())
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

// TestSameCallAfterARestart repeats a call while call_wait waits for it: both get the same
// result.
func TestSameCallAfterARestart(t *testing.T) {
	h, _, question := restarted(t, "add", "a")
	f := h.Start(t.Context(), request(ann, catalog.CallWait, map[string]any{"id": question}))
	defer f.Release()
	eventually(t, "the call was made again", func() bool {
		op, ok := h.Operations().Asking(question, ann)
		if ok {
			op.Release()
		}
		return ok
	})
	f.Cancel()
	if got := h.result(t, f).Error; got == nil || got.Code != tool.Canceled {
		t.Fatalf("a canceled call_wait = %v", got)
	}
	h.decide(t, question, true, "")
	if got := h.call(t, ann, "add", map[string]any{"text": "a"}).Result; got.Error != nil || h.calls() != 1 {
		t.Errorf("the same call = %v, and %d ran, want once", got.Error, h.calls())
	}
}

// TestRejectedAfterARestart checks that call_wait reports a rejection.
func TestRejectedAfterARestart(t *testing.T) {
	h, _, question := restarted(t, "add", "a")
	f := h.Start(t.Context(), request(ann, catalog.CallWait, map[string]any{"id": question}))
	defer f.Release()
	eventually(t, "the call was made again", func() bool {
		op, ok := h.Operations().Asking(question, ann)
		if ok {
			op.Release()
		}
		return ok
	})
	h.decide(t, question, false, "wrong file")
	wantError(t, "call_wait", h.result(t, f).Error, tool.Rejected, "User rejected the operation", "wrong file")
}

// TestWhatCannotBeMadeAgain checks that the error says what the caller must do.
func TestWhatCannotBeMadeAgain(t *testing.T) {
	t.Run("secret arguments", func(t *testing.T) {
		h, _, question := restarted(t, "tell", "swordfish")
		wantError(t, "call_wait", h.wait(t, ann, question).Error, tool.Conflict, "did not keep the secret arguments", "make the same call of tell again yourself")
		h.decide(t, question, true, "")
		if got := h.call(t, ann, "tell", map[string]any{"text": "swordfish"}).Result; got.Error != nil || h.calls() != 1 {
			t.Errorf("the same call made again = %v, and %d ran", got.Error, h.calls())
		}
	})
	t.Run("another client", func(t *testing.T) {
		h, _, question := restarted(t, "add", "a")
		other := ann
		other.Client = "another"
		wantError(t, "call_wait", h.wait(t, other, question).Error, tool.Conflict, "of the client test", "asked again")
		if h.calls() != 0 {
			t.Errorf("%d calls ran", h.calls())
		}
	})
	t.Run("another user", func(t *testing.T) {
		h, call, question := restarted(t, "add", "a")
		other := ann
		other.User = "bob"
		for _, id := range []string{call, question} {
			wantError(t, "call_wait", h.wait(t, other, id).Error, tool.NotFound)
		}
	})
}

// TestClosedQuestions checks what call_wait reports for closed questions without a call.
func TestClosedQuestions(t *testing.T) {
	t.Run("rejected", func(t *testing.T) {
		h, call, question := restarted(t, "add", "a")
		h.decide(t, question, false, "wrong file")
		for _, id := range []string{call, question} {
			wantError(t, "call_wait", h.wait(t, ann, id).Error, tool.Rejected, "was rejected by ann over cli", "wrong file")
		}
	})
	t.Run("canceled", func(t *testing.T) {
		h, _, question := restarted(t, "add", "a")
		must(t, h.approvals.Cancel(t.Context(), question))
		wantError(t, "call_wait", h.wait(t, ann, question).Error, tool.Canceled, "was canceled", "if it is still wanted")
	})
}

// used returns a host that was restarted after a call used its approval and returned its
// result, and the ids of the call and the question.
func used(t *testing.T, key string, run func(context.Context, tool.Call, tool.Sink) (tool.Result, error)) (h *host, call, question string) {
	t.Helper()
	dir := t.TempDir()
	h = open(t, options{dir: dir, run: run})
	req := request(ann, "add", map[string]any{"text": "a"})
	req.IdempotencyKey = key
	f := h.Start(t.Context(), req)
	question = <-h.questions
	h.decide(t, question, true, "")
	h.result(t, f)
	f.Release()
	h.stop()
	return open(t, options{dir: dir}), f.ID(), question
}

// TestUsedApprovals checks what call_wait reports for calls that used their approvals.
func TestUsedApprovals(t *testing.T) {
	t.Run("well", func(t *testing.T) {
		h, call, question := used(t, "", nil)
		for _, id := range []string{call, question} {
			if got := h.wait(t, ann, id); got.Error != nil || got.Text() != "["+call+" ended well; its result is not kept]" {
				t.Errorf("call_wait = %q, %v", got.Text(), got.Error)
			}
		}
	})
	t.Run("with a long result", func(t *testing.T) {
		long := strings.Repeat("x", int(65*tool.KiB))
		h, call, question := used(t, "", func(context.Context, tool.Call, tool.Sink) (tool.Result, error) {
			return tool.TextResult(long), nil
		})
		if got := h.wait(t, ann, question); got.Error != nil || !strings.HasPrefix(got.Text(), "[the whole: "+readOn(call, 0)+"]\n") {
			t.Errorf("call_wait = %q, %v", got.Text(), got.Error)
		}
	})
	t.Run("with a result that is kept for its key", func(t *testing.T) {
		h, _, question := used(t, "k1", nil)
		if got := h.wait(t, ann, question); got.Error != nil || got.Text() != `added {"text":"a"}` {
			t.Errorf("call_wait = %q, %v", got.Text(), got.Error)
		}
	})
	t.Run("with an error", func(t *testing.T) {
		h, call, question := used(t, "", func(context.Context, tool.Call, tool.Sink) (tool.Result, error) {
			return tool.ErrorResult(tool.Errorf(tool.ResourceExhausted, "no room for a").WithCause(errors.New("ENOSPC"))), nil
		})
		got := h.wait(t, ann, question).Error
		wantError(t, "call_wait", got, tool.ResourceExhausted, "no room for a", call)
		if strings.Contains(got.Message, "ENOSPC") {
			t.Errorf("the model reads the cause: %q", got.Message)
		}
	})
	t.Run("by a plugin that is gone", func(t *testing.T) {
		h, call, question := used(t, "", func(context.Context, tool.Call, tool.Sink) (tool.Result, error) {
			return tool.Result{}, tool.Errorf(tool.PluginCrashed, "the plugin is gone")
		})
		wantError(t, "call_wait", h.wait(t, ann, question).Error, tool.UnknownOutcome, call, "had its effect")
	})
	t.Run("not, since the host was killed", func(t *testing.T) {
		dir, copied := t.TempDir(), t.TempDir()
		running, finish := make(chan string, 1), make(chan struct{})
		h := open(t, options{dir: dir, run: func(_ context.Context, call tool.Call, _ tool.Sink) (tool.Result, error) {
			running <- call.ID
			<-finish
			return tool.TextResult("done"), nil
		}})
		_, question := h.ask(t, "add", "a")
		h.decide(t, question, true, "")
		call := <-running
		must(t, os.CopyFS(copied, os.DirFS(dir))) // the state that a kill would leave
		must(t, os.Chmod(filepath.Join(copied, "journal.key"), 0o600))
		close(finish)
		h = open(t, options{dir: copied})
		wantError(t, "call_wait", h.wait(t, ann, question).Error, tool.UnknownOutcome, call, "had its effect")
		if h.calls() != 0 {
			t.Errorf("%d calls ran", h.calls())
		}
	})
	t.Run("for another client", func(t *testing.T) {
		h, call, question := used(t, "k1", nil)
		other := ann
		other.Client = "another"
		wantError(t, "call_wait", h.wait(t, other, question).Error, tool.Conflict, "was used already, by call "+call, "see what it has changed")
	})
}

// TestExpiredQuestion waits for a question that expires, before and after a restart of the
// host.
func TestExpiredQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		h := open(t, options{dir: dir, patience: time.Hour})
		_, question := h.ask(t, "add", "a")
		wantError(t, "call_wait", h.wait(t, ann, question).Error, tool.Rejected, "no one approved the operation in time")
		h.stop()
		h = open(t, options{dir: dir})
		wantError(t, "after a restart call_wait", h.wait(t, ann, question).Error, tool.Rejected, "has expired", "make the call again")
		h.stop()
	})
}
