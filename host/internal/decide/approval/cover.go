package approval

import (
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
)

// Call describes a call that grants may cover.
type Call struct {
	User, Session, Plugin, Tool string
	Subject
	// Basis is the plugin's current program and tools.
	Basis catalog.Basis
	// Paused are grants that would cover the call if they were not paused, at most
	// [maxPaused]. [Grants.Covering] sets it if no grant covers the call.
	Paused []PausedGrant
}

// key is the place of a grant in the index. The number of keys that may cover a call does
// not depend on the number of grants: they are those of its tool and plugin, of its
// session and of all, of the folders around its first path, and of the beginnings of its
// commands.
type key struct {
	user, session, plugin, tool string
	path, host                  string
	words                       string // joined; "" of grants without a command
	open                        bool
}

func (g *Grant) key() key {
	k := key{user: g.User, session: g.Session, plugin: g.Plugin, tool: g.Tool, path: g.Path, host: g.Host}
	if g.Command != nil {
		k.words, k.open = joined(g.Command.Words), g.Command.Open
	}
	return k
}

// keys returns the keys of the grants without path and command that cover a call, and
// their number.
func (c *Call) keys() (all [4]key, n int) {
	for _, session := range [...]string{"", c.Session} {
		for _, tool := range [...]string{c.Tool, ""} {
			all[n] = key{user: c.User, session: session, plugin: c.Plugin, tool: tool, host: c.Host}
			n++
		}
		if c.Session == "" {
			break
		}
	}
	return all, n
}

// separator follows each word: no word contains it.
const separator = "\x00"

func joined(words []string) string { return strings.Join(words, separator) + separator }

// counted is a grant in force, and its uses.
type counted struct {
	grant    Grant         // as it was read; never changes
	deadline time.Duration // since Grants.started, by the monotonic clock; 0: none
	uses     atomic.Int64  // not on disk yet
	written  atomic.Int64  // on disk beyond grant.Uses; only if there is a MaxUses
	lastUsed atomic.Int64
	given    catalog.Basis // the program and tools that the grant is valid for; guarded by Grants.mu
	over     GrantState    // why it has ended, "" if it has not; guarded by Grants.mu
}

// holds reports whether a grant is in force and covers the paths of a call. g.mu is
// held.
func (g *Grants) holds(c *counted, call *Call) bool {
	return g.state(c) == GrantActive && (c.grant.Path == "" || allWithin(call.Paths, c.grant.Path))
}

// state returns the state of a grant. g.mu is held.
func (g *Grants) state(c *counted) GrantState {
	switch grant := &c.grant; {
	case c.over != "":
		return c.over
	case grant.MaxUses > 0 && grant.Uses+c.written.Load() >= grant.MaxUses:
		return GrantUsed
	case c.deadline > 0 && (g.elapsed() >= c.deadline || !g.now().Before(grant.Expires)):
		return GrantExpired
	}
	return GrantActive
}

// Covering returns the ids of grants that together cover a call; none if it is not
// covered.
func (g *Grants) Covering(call *Call) []string {
	g.mu.RLock()
	defer g.mu.RUnlock()
	call.Paused = nil
	if len(g.index) == 0 {
		return nil
	}
	ids := g.covering(call)
	if ids != nil {
		call.Paused = nil
	}
	return ids
}

// covering is [Grants.Covering] with g.mu held.
func (g *Grants) covering(call *Call) []string {
	if len(call.Commands) == 0 {
		if c := g.coveringCall(call); c != nil {
			return []string{c.grant.ID}
		}
		return nil
	}
	var ids []string
	for _, command := range call.Commands {
		c := g.coveringCommand(call, command)
		if c == nil {
			return nil
		}
		if !slices.Contains(ids, c.grant.ID) {
			ids = append(ids, c.grant.ID)
		}
	}
	return ids
}

// coveringCall returns a grant that covers a call without commands, or nil. g.mu is
// held.
func (g *Grants) coveringCall(call *Call) *counted {
	keys, n := call.keys()
	for _, k := range keys[:n] {
		if c := g.around(k, call); c != nil {
			return c
		}
	}
	return nil
}

// coveringCommand returns a grant that covers one command of a call, or nil. g.mu is
// held.
func (g *Grants) coveringCommand(call *Call, command Command) *counted {
	if command.Least == 0 {
		return nil
	}
	words := joined(command.Words)
	keys, n := call.keys()
	for _, k := range keys[:n] {
		k.words = words
		if c := g.around(k, call); c != nil {
			return c
		}
		k.open = true
		end := 0
		for i, word := range command.Words {
			end += len(word) + len(separator)
			if i+1 < command.Least {
				continue
			}
			k.words = words[:end]
			if c := g.around(k, call); c != nil {
				return c
			}
		}
	}
	return nil
}

// around returns a grant of a key that covers a call and has no path, or the path of a
// folder around the call's first path; nil if there is none. g.mu is held.
func (g *Grants) around(k key, call *Call) *counted {
	if c := g.first(k, call); c != nil || len(call.Paths) == 0 {
		return c
	}
	for k.path = call.Paths[0]; ; k.path = path.Dir(k.path) {
		if c := g.first(k, call); c != nil || k.path == path.Dir(k.path) {
			return c
		}
	}
}

// first returns the first grant of a key that covers a call and is not paused, or nil.
// g.mu is held.
func (g *Grants) first(k key, call *Call) *counted {
	for _, c := range g.index[k] {
		if !g.holds(c, call) {
			continue
		}
		if c.given.Holds(call.Basis, c.grant.Tool) {
			return c
		}
		call.notePaused(c)
	}
	return nil
}
