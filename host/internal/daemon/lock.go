package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/host/internal/tools/lock"
	"github.com/toolhost/toolhost/sdk/tool"
)

// lockFile is the lock file of the host's configuration, and what is in force of it.
type lockFile struct {
	file lock.File
	opts Options

	changing sync.Mutex // held while the file changes, until the change is in force; taken before mu

	mu  sync.Mutex // guards now
	now lock.Lock
}

// openLock reads the lock file before plugins start.
func openLock(cfg *config.Config, opts Options) (*lockFile, error) {
	l := &lockFile{file: lock.File{Path: cfg.Lock, StateDir: cfg.StateDir}, opts: opts}
	now, err := l.read(cfg)
	if err != nil {
		return nil, err
	}
	l.use(now)
	if now.Foreign {
		opts.Logger.Warn("the lock file is not used: it was changed where plugins could change it, and not by this host",
			"file", cfg.Lock, "then", "check it, then run "+commandOf(opts, "reload")+", which says how to use it")
	}
	return l, nil
}

// read reads the lock file for a configuration whose plugins are about to start.
func (l *lockFile) read(cfg *config.Config) (lock.Content, error) {
	if reachable(cfg) {
		if err := l.file.Guard(); err != nil {
			return lock.Content{}, err
		}
	}
	return l.file.Load()
}

// reachable reports whether an enabled plugin may write to the directory of the lock file.
func reachable(cfg *config.Config) bool {
	return slices.ContainsFunc(cfg.Plugins, func(p config.Plugin) bool {
		return p.Enabled && slices.Contains(exposed(cfg, p.Supervisor), cfg.Lock)
	})
}

// accepted returns the definitions in force. They must not be changed.
func (l *lockFile) accepted() lock.Lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

func (l *lockFile) use(now lock.Content) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = now.Lock
}

// change changes the file and what is in force.
func (l *lockFile) change(ctx context.Context, offered *catalog.Catalog, change func(*lock.Lock) error) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	now, err := l.file.Update(ctx, change)
	if err != nil {
		return err
	}
	l.use(now)
	offered.UseLock(now.Lock)
	return nil
}

// acceptedInRow bounds the definitions that one row of the journal names.
const acceptedInRow = 20

// AcceptDefinitions accepts definitions as the plugin publishes them now, and forgets tools that it no
// longer has: of the tools with these names, or of all that are not accepted. seen is the digest of
// the [catalog.Review] of them that a person has seen; if it is another one by now, nothing is
// accepted. They are in the lock file, in the journal and in force when it returns.
func (d *Daemon) AcceptDefinitions(ctx context.Context, plugin string, tools []string, seen string, by auth.Caller, via string) (catalog.Review, error) {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	p := &d.parts
	all, known := p.catalog.Review(plugin)
	if !known {
		return catalog.Review{}, tool.Errorf(tool.NotFound, "the tools of the plugin %s are not known", tool.VisibleName(plugin)).
			WithHint("%s lists the plugins", d.command("plugins list"))
	}
	review, err := all.Of(tools...)
	if err != nil {
		return catalog.Review{}, tool.Errorf(tool.NotFound, "%v", err).WithHint("%s shows what there is", d.command("plugins diff "+plugin))
	}
	if review.Digest() != seen {
		return catalog.Review{}, tool.Errorf(tool.Conflict, "the definitions of the plugin %q are not those that were shown", plugin).
			WithHint("%s shows them as they are now", d.command("plugins diff "+plugin))
	}
	ctx = context.WithoutCancel(ctx) // what the journal tells must happen
	if err := d.journalAccepted(ctx, review, by, via); err != nil {
		return catalog.Review{}, err
	}
	err = p.lock.change(ctx, p.catalog, func(l *lock.Lock) error {
		for _, t := range review.Tools {
			if t.State == catalog.DefinitionGone {
				l.Forget(plugin, t.Tool)
				continue
			}
			l.Accept(plugin, t.Published)
		}
		return nil
	})
	if err != nil {
		failed := p.journal.ChangeBy(ctx, by.User, via, fmt.Sprintf("the definitions of the plugin %q were not accepted: the lock file could not be written", plugin))
		if failed != nil {
			d.opts.Logger.Error("the journal cannot record that definitions were not accepted", "error", failed)
		}
		return catalog.Review{}, tool.Errorf(tool.Failed, "%v", err)
	}
	p.watcher.poke()
	d.opts.Logger.Info("definitions were accepted", "plugin", plugin, "tools", len(review.Tools), "by", by.User, "via", via)
	p.events.Publish("", event.Definitions{Plugin: plugin, Pending: len(p.catalog.Bases()[plugin].Pending), By: by.User})
	return review, nil
}

// journalAccepted records which definitions an administrator accepts.
func (d *Daemon) journalAccepted(ctx context.Context, review catalog.Review, by auth.Caller, via string) error {
	for part := range slices.Chunk(review.Tools, acceptedInRow) {
		var lines []string
		for _, t := range part {
			switch t.State {
			case catalog.DefinitionGone:
				lines = append(lines, t.Tool+" is gone")
			case catalog.DefinitionChanged:
				lines = append(lines, fmt.Sprintf("%s %s instead of %s", t.Tool, t.Published.Digest(), t.Accepted.Digest()))
			case catalog.DefinitionNew, catalog.DefinitionAccepted:
				lines = append(lines, t.Tool+" "+t.Published.Digest())
			}
		}
		change := fmt.Sprintf("accepts definitions of the plugin %q: %s", review.Plugin, strings.Join(lines, ", "))
		if err := d.parts.journal.ChangeBy(ctx, by.User, via, change); err != nil {
			return err
		}
	}
	return nil
}

// LockedState is what is known of the lock of a configuration without a start.
type LockedState struct {
	// Foreign is as in [lock.Content].
	Foreign bool
	// Plugins are those with tools that wait to be accepted or are gone.
	Plugins []LockedPlugin
}

// LockedPlugin is a plugin with tools that wait to be accepted, or that were accepted and are gone.
type LockedPlugin struct {
	Name    string
	Pending int
	Gone    []string
}

// LockState compares the tools that are known from earlier starts with the lock file. It starts
// nothing.
func LockState(cfg *config.Config, version string) (s LockedState, err error) {
	content, err := lock.File{Path: cfg.Lock, StateDir: cfg.StateDir}.Load()
	if err != nil {
		return LockedState{}, err
	}
	tools, err := knownTools(cfg, version)
	if err != nil {
		return LockedState{}, err
	}
	s.Foreign = content.Foreign
	for _, p := range cfg.Plugins {
		known := LockedPlugin{Name: p.Catalog.Name}
		for _, refusal := range tools.Refused() {
			switch {
			case refusal.Plugin != known.Name:
			case refusal.Pending:
				known.Pending++
			case refusal.Gone:
				known.Gone = append(known.Gone, refusal.Tool)
			}
		}
		if known.Pending+len(known.Gone) > 0 {
			s.Plugins = append(s.Plugins, known)
		}
	}
	return s, nil
}
