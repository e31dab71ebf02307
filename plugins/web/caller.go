package main

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/plugins/web/internal/fetch"
	"github.com/toolhost/toolhost/sdk"
)

// address reads an address that a caller gives.
func (p *parts) address(text string) (*url.URL, error) {
	if p.unguarded {
		return url.Parse(text)
	}
	u, err := p.guard.URL(text)
	if err != nil {
		return nil, fetch.Refused(err)
	}
	return u, nil
}

// session is one of a user. The zero value is none.
type session struct{ user, id string }

// owner is the session's name as the owner of a cache.
func (s session) owner() string { return s.user + "\n" + s.id }

// cacheOf names the cache of a caller: nobody sees what another one fetched.
func (p *parts) cacheOf(c *sdk.Call) string {
	if p.jars != nil {
		return session{c.User(), c.Session()}.owner()
	}
	return session{user: c.User()}.owner()
}

// jarOf returns the cookies of a caller's session; nil if they are not kept.
func (p *parts) jarOf(c *sdk.Call) http.CookieJar {
	if p.jars == nil || c.Session() == "" {
		return nil
	}
	return p.jars.of(session{c.User(), c.Session()})
}

// endSession forgets what is kept for a session.
func (w *web) endSession(id string) {
	p := w.parts.Load()
	if p == nil || p.jars == nil || id == "" {
		return
	}
	p.jars.end(id)
	p.client.Forget(func(owner string) bool { return strings.HasSuffix(owner, session{id: id}.owner()) })
}

// maxJars bounds the sessions whose cookies are kept.
const maxJars = 256

// jars are the cookies of sessions.
type jars struct {
	mu    sync.Mutex // guards what follows
	byKey map[session]http.CookieJar
	order []session // the one that was used longest ago first
}

// of returns the cookies of a session. Those of the session that was used longest
// ago are forgotten if there are too many.
func (j *jars) of(s session) http.CookieJar {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.byKey == nil {
		j.byKey = make(map[session]http.CookieJar)
	}
	if i := slices.Index(j.order, s); i >= 0 {
		j.order = slices.Delete(j.order, i, i+1)
	} else {
		if len(j.order) == maxJars {
			delete(j.byKey, j.order[0])
			j.order = slices.Delete(j.order, 0, 1)
		}
		j.byKey[s] = fetch.NewJar()
	}
	j.order = append(j.order, s)
	return j.byKey[s]
}

// end forgets the cookies of a session.
func (j *jars) end(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.order = slices.DeleteFunc(j.order, func(s session) bool { return s.id == id })
	maps.DeleteFunc(j.byKey, func(s session, _ http.CookieJar) bool { return s.id == id })
}
