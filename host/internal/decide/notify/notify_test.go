package notify_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/notify"
	"github.com/toolhost/toolhost/internal/testprogram"
	"github.com/toolhost/toolhost/sdk/tool"
)

const secret = notify.Secret("a secret of enough bytes for HMAC")

// received is a message as a receiver got it.
type received struct {
	header http.Header
	body   []byte
	notify.Message
}

// signed reports whether the message has the signature of the secret.
func (r received) signed() bool {
	h := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(h, "%s.%s.%s", r.header.Get("webhook-id"), r.header.Get("webhook-timestamp"), r.body)
	return r.header.Get("webhook-signature") == "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// receiver is a webhook. answer returns the status of the answer to the nth request, from 1.
func receiver(t *testing.T, answer func(n int) int) (url string, got chan received) {
	t.Helper()
	got = make(chan received, 2000)
	var mu sync.Mutex
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		message := received{header: r.Header, body: body}
		if err := json.Unmarshal(body, &message.Message); err != nil || r.Method != http.MethodPost {
			t.Errorf("%s %q: %v", r.Method, body, err)
		}
		mu.Lock()
		n++
		code := answer(n)
		mu.Unlock()
		w.WriteHeader(code)
		got <- message
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}

func always(code int) func(int) int { return func(int) int { return code } }

// logged is a log that a test reads.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start starts a service with short pauses between attempts.
func start(t *testing.T, notifiers ...notify.Notifier) (*notify.Service, *logged) {
	t.Helper()
	log := &logged{}
	s := notify.New(t.Context(), notify.Options{
		Notifiers: notifiers, Link: func(id string) string { return "https://tools.example.com/approvals/" + id },
		Backoff: []time.Duration{time.Millisecond, time.Millisecond}, Logger: hclog.New(&hclog.LoggerOptions{Output: log}),
	})
	t.Cleanup(func() { s.Close() })
	return s, log
}

func open(id, user string) approval.Record {
	return approval.Record{
		ID: id, User: user, Tool: "write_file", Plugin: "fs", Tier: tool.SideEffecting, State: approval.Open,
		Summary: "write the password hunter2", Expires: time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond),
	}
}

// TestWebhook: a message says who waits for what, without values of arguments, and is signed.
func TestWebhook(t *testing.T) {
	t.Parallel()
	url, got := receiver(t, always(http.StatusNoContent))
	s, _ := start(t, notify.Notifier{Name: "chat", Webhook: url, Secret: secret, Users: []string{"ada"}})
	s.Changed(open("ap_1", "bob"))
	s.Changed(open("ap_2", "ada"))
	m := <-got
	if !m.signed() || m.header.Get("webhook-id") != "ap_2" || m.header.Get("Content-Type") != "application/json" {
		t.Errorf("header %v of %s: wrong, or the signature is", m.header, m.body)
	}
	if bytes.Contains(m.body, []byte("hunter2")) {
		t.Errorf("the message has values of arguments: %s", m.body)
	}
	want := notify.Data{
		ID: "ap_2", Tool: "write_file", Plugin: "fs", User: "ada", Summary: "A call of write_file (plugin fs) for ada waits for a person",
		State: approval.Open, Expires: m.Data.Expires, URL: "https://tools.example.com/approvals/ap_2",
	}
	if m.Kind != notify.Waiting || m.Data != want || m.Data.Expires.IsZero() {
		t.Errorf("message %+v, want %+v", m.Message, want)
	}
	s.Use(t.Context(), []notify.Notifier{{Name: "chat", Webhook: url, Secret: secret, Details: true}})
	s.Changed(open("ap_3", "bob"))
	if m := <-got; !strings.HasSuffix(m.Data.Summary, ": write the password hunter2") {
		t.Errorf("with details, the message is %s", m.body)
	}
}

// TestRetry: a message that is not taken is sent again with the same id, and the failure is told
// until one is taken.
func TestRetry(t *testing.T) {
	t.Parallel()
	var s *notify.Service
	var problems []string
	url, got := receiver(t, func(n int) int {
		if n == 1 {
			return http.StatusInternalServerError
		}
		problems = s.Problems()
		return http.StatusOK
	})
	s, log := start(t, notify.Notifier{Name: "chat", Webhook: url, Secret: secret})
	s.Changed(open("ap_1", "ada"))
	first, second := <-got, <-got
	if first.header.Get("webhook-id") != second.header.Get("webhook-id") || !second.signed() {
		t.Errorf("attempts with ids %q and %q, want one id", first.header.Get("webhook-id"), second.header.Get("webhook-id"))
	}
	if len(problems) != 1 || !strings.Contains(problems[0], `notify "chat" fails`) || strings.Contains(problems[0], "127.0.0.1") {
		t.Errorf("Problems() = %q after a failure", problems)
	}
	if !strings.Contains(log.String(), "the webhook answered 500") {
		t.Errorf("the log does not say why: %s", log)
	}
	s.Changed(open("ap_2", "ada")) // is sent after the first one was settled
	<-got
	if problems != nil {
		t.Errorf("Problems() = %q after a success", problems)
	}
}

// TestGivenUp: after the last attempt a message is given up, and the next one is sent.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	url, got := receiver(t, always(http.StatusBadGateway))
	s, log := start(t, notify.Notifier{Name: "chat", Webhook: url, Secret: secret})
	s.Changed(open("ap_1", "ada"))
	for range 3 {
		<-got
	}
	s.Changed(open("ap_2", "ada"))
	if m := <-got; m.Data.ID != "ap_2" {
		t.Errorf("another attempt for %s, want 3", m.Data.ID)
	}
	if !strings.Contains(log.String(), "is given up") {
		t.Errorf("the log does not say that a message is given up: %s", log)
	}
}

// TestRedirect: a webhook that redirects gets no second request anywhere.
func TestRedirect(t *testing.T) {
	t.Parallel()
	asked := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer elsewhere.Close()
	redirects := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer redirects.Close()
	s, _ := start(t, notify.Notifier{Name: "chat", Webhook: redirects.URL, Secret: secret})
	err := s.Test(t.Context(), "chat")
	if err == nil || !strings.Contains(err.Error(), "307: redirects are not followed") || asked {
		t.Errorf("Test() = %v, and the other server was asked: %t", err, asked)
	}
	if err := s.Test(t.Context(), "chta"); err == nil || tool.AsError(err).Code != tool.NotFound {
		t.Errorf("Test() of an unknown notifier = %v", err)
	}
}

// TestHangs: a webhook that does not answer delays nobody, its queue is bounded, and Close ends it.
func TestHangs(t *testing.T) {
	t.Parallel()
	begun, release := make(chan bool, 1), make(chan bool)
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- true
		<-release
	}))
	defer hangs.Close()
	defer close(release)
	url, got := receiver(t, always(http.StatusOK))
	s, log := start(t,
		notify.Notifier{Name: "hangs", Webhook: hangs.URL, Secret: secret},
		notify.Notifier{Name: "works", Webhook: url, Secret: secret})
	s.Changed(open("ap_0", "ada"))
	<-begun
	<-got
	for i := range 600 {
		s.Changed(open(fmt.Sprintf("ap_%d", i+1), "ada"))
		<-got
	}
	if n := strings.Count(log.String(), "is dropped: too many wait"); n != 101 {
		t.Errorf("%d messages were dropped of 601 in a queue of 500", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestReminder: a reminder follows while the call waits, and none after the decision, which is told.
func TestReminder(t *testing.T) {
	t.Parallel()
	url, got := receiver(t, always(http.StatusOK))
	s, _ := start(t, notify.Notifier{Name: "chat", Webhook: url, Secret: secret, Remind: time.Millisecond})
	s.Changed(open("ap_1", "ada"))
	first, second := <-got, <-got
	if first.Kind != notify.Waiting || second.Kind != notify.Reminder || second.header.Get("webhook-id") != "ap_1.reminder" {
		t.Errorf("messages %s and %s, want waiting and reminder", first.body, second.body)
	}
	s.Use(t.Context(), []notify.Notifier{{Name: "chat", Webhook: url, Secret: secret, Remind: time.Hour, Decided: true}})
	s.Changed(open("ap_2", "ada"))
	<-got
	decided := open("ap_2", "ada")
	decided.State, decided.DecidedBy = approval.Approved, "lea"
	s.Changed(decided)
	if m := <-got; m.Kind != notify.Decided || !strings.Contains(m.Data.Summary, "was approved by lea") {
		t.Errorf("message %s, want that lea approved it", m.body)
	}
	decided.State = approval.Spent
	s.Changed(decided)
	decided.State, decided.ID = approval.Rejected, "ap_3"
	s.Changed(decided)
	if m := <-got; m.Data.ID != "ap_3" {
		t.Errorf("message %s about a call that ran, want none", m.body)
	}
}

// TestReload: a notifier that a reload corrects delivers what waits.
func TestReload(t *testing.T) {
	t.Parallel()
	broken, failed := receiver(t, always(http.StatusNotFound))
	url, got := receiver(t, always(http.StatusOK))
	s := notify.New(t.Context(), notify.Options{
		Notifiers: []notify.Notifier{{Name: "chat", Webhook: broken, Secret: secret}},
		Backoff:   []time.Duration{time.Hour}, Logger: hclog.NewNullLogger(),
	})
	defer s.Close()
	s.Changed(open("ap_1", "ada"))
	<-failed
	s.Use(t.Context(), []notify.Notifier{{Name: "chat", Webhook: url, Secret: secret}, {Name: "other", Webhook: url, Secret: secret}})
	if m := <-got; m.Data.ID != "ap_1" {
		t.Errorf("message %s, want the one that failed", m.body)
	}
	s.Use(t.Context(), nil)
	s.Changed(open("ap_2", "ada"))
	if problems := s.Problems(); len(got) > 0 || problems != nil {
		t.Errorf("after its removal, a notifier has sent %d messages and has the problems %q", len(got), problems)
	}
}

// TestCommand: a command gets the message on its standard input and facts in its environment; no
// shell reads them, and its output goes to the log.
func TestCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "notify")
	script := "#!/bin/sh\ncat > \"$1/stdin\"\nenv > \"$1/env\"\necho \"told\"\n"
	if err := testprogram.Write(program, strings.NewReader(script)); err != nil {
		t.Fatal(err)
	}
	argv := []string{program, dir, "$(touch " + dir + "/ran)"}
	s, log := start(t, notify.Notifier{Name: "phone", Command: argv, Users: []string{"ada"}})
	if err := s.Test(t.Context(), "phone"); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(filepath.Join(dir, "stdin"))
	var m notify.Message
	if err := json.Unmarshal(body, &m); err != nil || m.Kind != notify.Test {
		t.Errorf("standard input %q (%v), want a test message", body, err)
	}
	env, err2 := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if !slices.Contains(strings.Split(string(env), "\n"), "TOOLHOST_TYPE=test") {
		t.Errorf("environment %s", env)
	}
	if !strings.Contains(log.String(), "output=told") {
		t.Errorf("the log lacks the output: %s", log)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("a shell has read the message")
	}
	failing, _ := start(t, notify.Notifier{Name: "phone", Command: []string{"/bin/sh", "-c", "echo no route >&2; exit 3"}})
	if err := failing.Test(t.Context(), "phone"); err == nil || !strings.Contains(err.Error(), "exit status 3: no route") {
		t.Errorf("Test() = %v, want the exit status and the first line", err)
	}
}

// TestSecret: a secret is long enough, and base64 after whsec_.
func TestSecret(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		secret notify.Secret
		valid  bool
	}{
		{secret, true},
		{"short", false},
		{notify.Secret("whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 24))), true},
		{notify.Secret("whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 23))), false},
		{"whsec_not base64 but long enough for a secret", false},
	} {
		if err := tt.secret.Check(); (err == nil) != tt.valid {
			t.Errorf("Check(%q) = %v, want valid: %t", tt.secret, err, tt.valid)
		}
	}
}
