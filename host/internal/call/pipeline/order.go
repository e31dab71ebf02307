package pipeline

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/internal/links"
	"github.com/toolhost/toolhost/sdk/tool"
)

// order makes a call that changes something wait for earlier calls that touch the same things:
// the same file, git repository or shell. A call that waits for a person has no place in the
// order yet.
type order struct {
	mu    sync.Mutex // guards turns
	turns []*turn    // in the order of arrival
}

// turn is the place of a call in the order, until done is closed.
type turn struct {
	operation.Turn

	touches touches
	done    chan struct{}
}

// touches is what a call may change, by the roles of its arguments.
type touches struct {
	session      session
	command      bool     // it runs a command, which may change any file
	shell        string   // the tool whose shell keeps state; "" if it has none
	paths        []string // files and directories, absolute and without symbolic links
	repositories []string // git repositories, absolute and without symbolic links
}

// touches returns what a call may change. The zero value means that no other call must wait.
func (s *Settings) touches(c *call) touches {
	if c.tier == tool.ReadOnly || c.entry.OfHost() {
		return touches{}
	}
	t := touches{session: session{c.Caller.User, c.Caller.Session}}
	runs, inShell := c.entry.HasRole(tool.RoleCommand) || c.entry.HasRole(tool.RoleArgv), c.entry.HasRole(tool.RoleScript)
	if t.command = runs || inShell; t.command {
		if !runs {
			t.shell = c.entry.Plugin + "/" + c.entry.Spec.Name
		}
		return t
	}
	if len(s.Roots) == 0 {
		return touches{}
	}
	within := c.entry.ValuesOf(tool.RoleRepository, c.arguments.Values)
	for _, name := range c.names {
		if !slices.Contains(within, name) {
			t.paths = append(t.paths, links.Resolve(s.absolute(name)))
		}
	}
	if c.entry.HasRole(tool.RoleRepository) {
		if len(within) == 0 { // the repository of the first file, or of the workspace
			within = append(slices.Clone(c.names), "")[:1]
		}
		for _, name := range within {
			t.repositories = append(t.repositories, repositoryOf(links.Resolve(s.absolute(name))))
		}
	}
	return t
}

// repositoryOf returns the directory of the git repository that contains a path, or the path
// itself.
func repositoryOf(path string) string {
	for dir := path; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return path
		}
	}
}

// edits reports whether a call changes files without running a command.
func (t *touches) edits() bool { return len(t.paths)+len(t.repositories) > 0 }

// meets reports whether one of two calls must wait for the other. A command and the edits in
// its session wait for each other; two commands do not.
func (t *touches) meets(other *touches) bool {
	if t.session == other.session {
		switch {
		case t.command && other.edits(), t.edits() && other.command:
			return true
		case t.shell != "" && t.shell == other.shell:
			return true
		case overlap(t.paths, other.repositories), overlap(t.repositories, other.paths):
			return true
		}
	}
	return overlap(t.paths, other.paths) || slices.ContainsFunc(t.repositories, func(r string) bool {
		return slices.Contains(other.repositories, r)
	})
}

// overlap reports whether a path in one list equals, or is below, a path in the other.
func overlap(a, b []string) bool {
	below := func(path, dir string) bool {
		return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
	}
	for _, one := range a {
		for _, other := range b {
			if below(one, other) || below(other, one) {
				return true
			}
		}
	}
	return false
}

// takeTurn waits until no earlier call touches the same things. leave gives up the call's
// place.
func (p *Pipeline) takeTurn(ctx context.Context, c *call) (leave func(), err error) {
	touched := p.current(c).touches(c)
	if !touched.command && !touched.edits() {
		return func() {}, nil
	}
	mine := &turn{
		Turn:    operation.Turn{Call: c.id, Tool: c.entry.Spec.Name, User: c.Caller.User, Session: c.Caller.Session},
		touches: touched, done: make(chan struct{}),
	}
	before, ok := p.order.join(mine, p.opts.MaxWaiting)
	if !ok {
		return nil, p.tooBusy(c)
	}
	leave = func() { p.order.leave(mine) }
	if len(before) == 0 {
		return leave, nil
	}
	// The earlier call may take as long as any tool may.
	ctx, cancel := context.WithTimeoutCause(ctx, p.opts.Keep, waitedTooLong(c, p.opts.Keep))
	defer cancel()
	defer c.operation.Resume()
	for _, earlier := range before {
		select {
		case <-earlier.done:
			continue
		default:
		}
		c.operation.Queue(earlier.Turn)
		p.remind(c)
		select {
		case <-earlier.done:
		case <-ctx.Done():
			leave()
			return nil, operation.Cause(ctx)
		}
	}
	return leave, nil
}

// join adds a call to the order and returns the earlier calls that it must wait for. ok is
// false if there are more than most.
func (o *order) join(t *turn, most int) (before []*turn, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	own := 0
	for _, earlier := range o.turns {
		if t.touches.meets(&earlier.touches) {
			before = append(before, earlier)
			if earlier.User == t.User {
				own++
			}
		}
	}
	if own > most || len(before) > usersWaiting*most {
		return nil, false
	}
	o.turns = append(o.turns, t)
	return before, true
}

// leave removes a call from the order, so that the calls behind it can run.
func (o *order) leave(t *turn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.turns = slices.DeleteFunc(o.turns, func(other *turn) bool { return other == t })
	close(t.done)
}
