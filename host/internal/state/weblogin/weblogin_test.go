package weblogin_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/host/internal/state/weblogin"
)

// world is a store, a credential, and a clock that the test sets.
type world struct {
	t      *testing.T
	store  *store.Store
	tokens *auth.Tokens
	caller auth.Caller
	now    atomic.Pointer[time.Time]
	logins *weblogin.Logins
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t}
	var err error
	if w.store, err = store.Open(t.Context(), store.Options{Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.store.Close() })
	secret, digest := auth.NewToken()
	if w.tokens, err = auth.NewTokens([]auth.Token{{Name: "lea", SHA256: digest, User: "lea", Roles: auth.Approver}}); err != nil {
		t.Fatal(err)
	}
	w.caller, _ = w.tokens.Lookup(secret)
	w.set(time.Now())
	w.restart()
	return w
}

func (w *world) set(now time.Time)         { w.now.Store(&now) }
func (w *world) pass(d time.Duration)      { w.set(w.now.Load().Add(d)) }
func (w *world) valid(secret string) error { return w.check(secret, false) }
func (w *world) use(secret string) error   { return w.check(secret, true) }
func (w *world) check(s string, u bool) error {
	_, err := w.logins.Caller(w.t.Context(), s, nil, u)
	return err
}

// restart reads the logins again, as the next host does.
func (w *world) restart() {
	w.t.Helper()
	var err error
	w.logins, err = weblogin.New(w.t.Context(), weblogin.Options{Store: w.store, Tokens: []*auth.Tokens{w.tokens}, Now: func() time.Time { return *w.now.Load() }})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) code() string {
	w.t.Helper()
	link, err := w.logins.Offer(w.caller)
	if err != nil {
		w.t.Fatal(err)
	}
	return link.Code
}

func (w *world) login() string {
	w.t.Helper()
	secret, err := w.logins.Begin(w.t.Context(), w.code(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

func TestLinkEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	code := w.code()
	w.pass(2*time.Minute - time.Second)
	if _, err := w.logins.Look(code, nil); err != nil {
		t.Errorf("within two minutes: %v", err)
	}
	w.pass(time.Second)
	if _, err := w.logins.Begin(t.Context(), code, nil); !errors.Is(err, weblogin.ErrNotValid) {
		t.Errorf("after two minutes: %v, want that it is not valid", err)
	}
	later := w.code()
	w.pass(-time.Hour) // the clock was set back
	if _, err := w.logins.Look(later, nil); !errors.Is(err, weblogin.ErrNotValid) {
		t.Errorf("from the future: %v, want that it is not valid", err)
	}
}

// TestLinkOpensOnce checks that one of many requests at once opens a link.
func TestLinkOpensOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	code := w.code()
	var opened atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := w.logins.Begin(t.Context(), code, nil); err == nil {
				opened.Add(1)
			}
		})
	}
	all.Wait()
	if opened.Load() != 1 {
		t.Errorf("the link was opened %d times, want once", opened.Load())
	}
}

func TestLoginEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		pass func(w *world, secret string)
		ok   bool
	}{
		{"used now and then", func(w *world, s string) {
			for range 12 {
				w.pass(59 * time.Minute)
				_ = w.use(s)
			}
		}, true},
		{"unused for an hour", func(w *world, _ string) { w.pass(time.Hour) }, false},
		{"only open in a browser", func(w *world, s string) {
			for range 3 {
				w.pass(25 * time.Minute)
				_ = w.valid(s)
			}
		}, false},
		{"after 12 hours", func(w *world, s string) {
			for range 24 {
				w.pass(30 * time.Minute)
				_ = w.use(s)
			}
		}, false},
		{"made in the future", func(w *world, _ string) { w.pass(-time.Minute) }, false},
		{"after a restart", func(w *world, _ string) { w.restart() }, true},
		{"used before a restart", func(w *world, s string) {
			w.pass(50 * time.Minute)
			_ = w.use(s)
			w.pass(50 * time.Minute)
			w.restart()
		}, true},
		{"logged out", func(w *world, s string) {
			if err := w.logins.End(w.t.Context(), s); err != nil {
				w.t.Error(err)
			}
		}, false},
		{"logged out before a restart", func(w *world, s string) { _ = w.logins.End(w.t.Context(), s); w.restart() }, false},
		{"all logged out", func(w *world, _ string) {
			if n, err := w.logins.EndAll(w.t.Context(), w.caller); n != 1 || err != nil {
				w.t.Errorf("%d ended, %v", n, err)
			}
		}, false},
		{"another logged out", func(w *world, _ string) { _ = w.logins.End(w.t.Context(), w.login()) }, true},
		{"its token is gone", func(w *world, _ string) { _ = w.tokens.Replace(nil) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			secret := w.login()
			tt.pass(w, secret)
			if err := w.valid(secret); (err == nil) != tt.ok {
				t.Errorf("the login: %v, want valid: %v", err, tt.ok)
			}
		})
	}
}

// TestManyLogins checks that a credential has a bounded number of links and logins, the newest.
func TestManyLogins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.code()
	for range 8 {
		w.pass(time.Millisecond)
		w.code()
	}
	if _, err := w.logins.Look(first, nil); !errors.Is(err, weblogin.ErrNotValid) {
		t.Errorf("the first of 9 links: %v, want that it is not valid", err)
	}
	var secrets []string
	for range 17 {
		w.pass(time.Millisecond)
		secrets = append(secrets, w.login())
	}
	if err := w.valid(secrets[0]); !errors.Is(err, weblogin.ErrNotValid) {
		t.Errorf("the first of 17 logins: %v, want that it has ended", err)
	}
	w.restart()
	for i, secret := range secrets[1:] {
		if err := w.valid(secret); err != nil {
			t.Errorf("login %d: %v", i+1, err)
		}
	}
}

func TestWhoGetsNoLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, caller := range []auth.Caller{
		{User: "lea", Token: "agent", Roles: auth.Agent},
		{User: "lea", Roles: auth.Approver},
		{User: "lea@corp", Token: "corp", Issuer: "corp", Roles: auth.Approver},
	} {
		if _, err := w.logins.Offer(caller); err == nil {
			t.Errorf("%+v gets a link", caller)
		}
	}
}
