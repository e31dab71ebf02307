package supervisor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Run sends one call to the plugin that owns the tool and waits for its result. It
// starts the plugin if it is not running. When ctx ends, Run tells the plugin to stop
// and returns at once with code [tool.Timeout] or [tool.Canceled]; it never waits for
// the plugin to agree. A result that has already arrived is returned nevertheless.
//
// digest is the digest that [Options.Publish] received with the tools that the call was checked
// against; "" means any. If the plugin now has other tools, Run does not send the call, and the
// error says to make it again: the new tools are already published.
//
// Run sends only approved calls to a process for which [Supervisor.Unhidden] holds.
//
// sent reports whether the plugin may have seen the call. Every error is a
// [*tool.Error]. Run does not retry.
func (s *Supervisor) Run(ctx context.Context, plugin, digest string, call tool.Call, sink tool.Sink) (result tool.Result, sent bool, err error) {
	waits := func(why string) {
		if sink.Progress != nil {
			sink.Progress(tool.Progress{Message: why})
		}
	}
	p, i, err := s.take(ctx, plugin, digest, &call, waits)
	if err != nil {
		return tool.Result{}, false, err
	}
	defer p.release(i)
	if call.Context.ApprovalID == "" && i.unhidden() {
		return tool.Result{}, false, p.unavailable(time.Millisecond, nil, "may see files that paths.forbidden covers: a person must approve the call")
	}
	result, fate, err := i.proc.Call(ctx, call, p.heardFrom(i, sink))
	if fate == process.Running {
		p.giveUp(ctx, i, call.ID)
	}
	sent = fate != process.Unsent
	if err != nil {
		return tool.Result{}, sent, p.callFailed(ctx, i, request{sent: sent}, err)
	}
	nameLimit(&result, plugin, p.plugin.Limits)
	return result, true, nil
}

// Unhidden reports whether programs that a process of the plugin executes may see
// forbidden files, because the search for them was incomplete when the process started. If users
// or sessions have processes of their own, only those of this user and session count.
func (s *Supervisor) Unhidden(plugin, user, session string) bool {
	m := s.manager(plugin)
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.ownerOf(user, session)
	pools := []*pool{m.scoped[of], m.scoped[owner{user: of.user, session: of.session, reader: true}]}
	if !m.owned(of) {
		pools[0] = m.base
	}
	return slices.ContainsFunc(pools, func(p *pool) bool {
		return p != nil && p.unhidden() // otherwise its first process is not known yet: Run asks again
	})
}

func (p *pool) unhidden() bool {
	for _, i := range p.instances {
		if i.unhidden() {
			return true
		}
	}
	return false
}

func (i *instance) unhidden() bool { return i.proc.Sandboxed().Report.Unhidden() }

// Preview asks the plugin that owns the tool what a call would do. It starts the
// plugin if it is not running; then the plugin has 5 s. After that, or when ctx ends,
// Preview tells the plugin to stop and returns at once with code [tool.Timeout] or
// [tool.Canceled].
//
// digest is as in [Supervisor.Run].
//
// Every error is a [*tool.Error]. It is the plugin's own if the call cannot succeed,
// or it explains why there is no preview. A code that is unknown, or reserved for the
// host, becomes [tool.Failed]. A preview without a digest binds the call to no state.
func (s *Supervisor) Preview(ctx context.Context, plugin, digest string, call tool.Call) (tool.Preview, error) {
	p, i, err := s.take(ctx, plugin, digest, &call, func(string) {})
	if err != nil {
		return tool.Preview{}, err
	}
	defer p.release(i)
	slow := tool.Errorf(tool.Timeout, "the plugin %q did not say within %v what the call would do", plugin, s.timing.preview)
	ctx, cancel := context.WithTimeoutCause(ctx, s.timing.preview, slow)
	defer cancel()

	preview, fate, err := i.proc.Preview(ctx, call)
	if fate == process.Running {
		p.giveUp(ctx, i, call.ID)
	}
	switch {
	case err == nil:
		return preview, nil
	case errors.Is(context.Cause(ctx), slow):
		return tool.Preview{}, slow.WithCause(err)
	}
	return tool.Preview{}, p.callFailed(ctx, i, request{sent: fate != process.Unsent, preview: true}, err)
}

// take completes a call and returns the process for it, started if there is none. The
// caller releases it. The error is for callers; the plugin has not seen the call.
func (s *Supervisor) take(ctx context.Context, plugin, digest string, call *tool.Call, waits notify) (*pool, *instance, error) {
	p, i, err := s.acquire(ctx, plugin, call, waits)
	if err != nil {
		return nil, nil, err
	}
	if digest != "" && digest != *i.revision.Load() && !p.readerHas(i, digest, call.Tool) {
		p.release(i)
		if p.of.reader && p.publishesAs(i.digest, digest) {
			return nil, nil, p.unavailable(0, nil, "has another tool %s in its process for read_only calls (split_tiers) than in its other one", call.Tool).
				WithHint("an operator must look at it: its tools may depend on its state or on a network, which that process does not have")
		}
		if p != p.base && !p.of.reader && p.publishes(i.digest) {
			return nil, nil, p.unavailable(0, nil, "offers this caller other tools than everybody else").
				WithHint("an operator must look at it: its tools may not depend on the user")
		}
		return nil, nil, p.unavailable(time.Millisecond, nil, "has changed since the call was checked")
	}
	if err := p.giveUserDir(&call.Context, i); err != nil {
		p.release(i)
		return nil, nil, tool.Errorf(tool.Internal, "internal error").WithCause(err)
	}
	return p, i, nil
}

// acquire is [manager.acquire] of the manager that takes the plugin's calls now.
func (s *Supervisor) acquire(ctx context.Context, plugin string, call *tool.Call, waits notify) (*pool, *instance, error) {
	for {
		m := s.manager(plugin)
		if m == nil {
			return nil, nil, tool.Errorf(tool.Unavailable, "there is no plugin %q", plugin)
		}
		if err := m.complete(call); err != nil {
			return nil, nil, tool.Errorf(tool.Internal, "internal error").WithCause(err)
		}
		p, i, err := m.acquire(ctx, call, waits)
		if !errors.Is(err, errSuperseded) { // otherwise another manager takes the call, or none
			return p, i, err
		}
	}
}

// complete adds the parts of a call that only the supervisor knows. It refuses a call
// that cannot be sent.
func (m *manager) complete(call *tool.Call) error {
	c := &call.Context
	if len(c.Roots) == 0 {
		dir, err := m.s.opts.Workspace.Of(c.User)
		if err != nil && m.plugin.Scope != Shared { // a shared process sees no workspace of a user
			return err
		}
		if dir != "" {
			c.Roots = []string{dir}
		}
	}
	// A client may report any name; no decision depends on it.
	c.Client = strings.ToValidUTF8(c.Client, "\uFFFD")
	var files []string
	if c.Files != nil {
		files = slices.Concat(c.Files.Sensitive, c.Files.Allowed, c.Files.Forbidden)
	}
	for _, text := range append([]string{call.ID, call.Tool, c.Session, c.User, c.Traceparent, c.ApprovalID, c.UserDir}, slices.Concat(c.Roots, c.Protected, files)...) {
		if !utf8.ValidString(text) {
			return fmt.Errorf("the call of plugin %q holds text that is not valid UTF-8: %.256q", m.plugin.Name, text)
		}
	}
	return nil
}

// publishes reports whether the published tools are those of a program.
func (m *manager) publishes(program string) bool {
	m.publishMu.Lock()
	defer m.publishMu.Unlock()
	return m.program == program
}

// giveUserDir tells a call the directory of its user in the state of the process.
func (p *pool) giveUserDir(c *tool.Context, i *instance) (err error) {
	switch {
	case c.UserDir != "" || c.User == "":
	case p.plugin.Scope != Shared:
		c.UserDir = i.stateDir
	case p.of.reader:
		if c.UserDir, err = userDirIn(i.stateDir, c.User); err != nil {
			return fmt.Errorf("make the user's directory: %w", err)
		}
	default:
		if c.UserDir, err = p.knownUserDir(c.User); err != nil {
			return fmt.Errorf("make the user's directory: %w", err)
		}
	}
	return nil
}

// maxKnownUsers bounds the users whose directories a manager remembers.
const maxKnownUsers = 10_000

// knownUserDir is userDir, which makes the directory at the user's first call only: that takes
// longer than the rest of the way to the plugin. A plugin that removes it misses it.
func (m *manager) knownUserDir(user string) (string, error) {
	m.mu.Lock()
	dir, ok := m.userDirs[user]
	m.mu.Unlock()
	if ok {
		return dir, nil
	}
	dir, err := m.userDir(user)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.userDirs) >= maxKnownUsers {
		clear(m.userDirs)
	}
	m.userDirs[user] = dir
	return dir, nil
}

// heardFrom returns sink, except that progress and output count as signs of life.
func (m *manager) heardFrom(i *instance, sink tool.Sink) tool.Sink {
	note := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		i.heard = time.Now()
	}
	progress, chunk := sink.Progress, sink.Chunk
	sink.Progress = func(p tool.Progress) {
		note()
		if progress != nil {
			progress(p)
		}
	}
	sink.Chunk = func(c tool.Chunk) {
		note()
		if chunk != nil {
			chunk(c)
		}
	}
	return sink
}

// nameLimit adds the limit to the error of a tool that met it: the system's message names
// neither the limit nor who set it.
func nameLimit(r *tool.Result, plugin string, l sandbox.Limits) {
	if r.Error == nil || r.Error.Hint != "" {
		return
	}
	message := strings.ToLower(r.Error.Message)
	switch {
	case l.OpenFiles > 0 && strings.Contains(message, "too many open files"):
		r.Error = r.Error.WithHint("the plugin %q met its limit of open files (%d)", plugin, l.OpenFiles)
	case l.FileSize > 0 && strings.Contains(message, "file too large"):
		r.Error = r.Error.WithHint("the plugin %q met its file size limit (%v)", plugin, l.FileSize)
	}
}

// userDir makes the directory of a user in the plugin's state directory, which a start has made,
// and returns its path. It gets the owner of the state directory, because the plugin may run as
// another user than the host.
func (m *manager) userDir(user string) (string, error) { return userDirIn(m.stateDir(), user) }

// userDirIn is userDir in a state directory.
func userDirIn(stateDir, user string) (string, error) {
	// The plugin may have put symbolic links there: nothing leads out of a root.
	state, err := os.OpenRoot(stateDir)
	if err != nil {
		return "", err
	}
	defer func() { _ = state.Close() }() // it was only read
	// A hash, because the name of a user may contain anything, "../" too.
	sum := sha256.Sum256([]byte(user))
	name := filepath.Join("users", hex.EncodeToString(sum[:16]))
	for _, dir := range []string{"users", name} {
		if err := makeDirLike(state, dir); err != nil {
			return "", err
		}
	}
	return filepath.Join(stateDir, name), nil
}

// makeDirLike makes a directory below root that has the owner of root.
func makeDirLike(root *os.Root, name string) error {
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	made, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if !made.IsDir() { // a link would lead out
		return fmt.Errorf("%s is not a directory", name)
	}
	if os.Geteuid() != 0 {
		return nil
	}
	owner, err := root.Stat(".")
	if err != nil {
		return err
	}
	to, ok := owner.Sys().(*syscall.Stat_t)
	is, also := made.Sys().(*syscall.Stat_t)
	if !ok || !also {
		return errors.New("this system does not report owners")
	}
	if is.Uid == to.Uid && is.Gid == to.Gid {
		return nil
	}
	return root.Lchown(name, int(to.Uid), int(to.Gid))
}
