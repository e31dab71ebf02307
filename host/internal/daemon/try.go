package daemon

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/plugin/install"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/host/internal/tools/lock"
)

// Trial starts plugins to check a configuration, without a host. The next host knows their
// tools, unless the trial had to use a temporary directory.
type Trial struct {
	dir      string
	giveBack func() error
}

// NewTrial begins a trial. If it keeps what it learns, it holds the state directory, which it
// makes if there is none; otherwise, or if a host holds that directory, the plugins get a
// temporary one with the tools that are known. The caller must Close the trial.
func NewTrial(stateDir string, keeps bool) (*Trial, error) {
	if !keeps {
		return temporaryTrial(stateDir)
	}
	lock, err := store.Lock(stateDir)
	if err == nil {
		return &Trial{stateDir, lock.Close}, nil
	}
	if _, held := errors.AsType[*HeldError](err); !held {
		return nil, err
	}
	return temporaryTrial(stateDir)
}

func temporaryTrial(stateDir string) (*Trial, error) {
	dir, err := os.MkdirTemp("", "toolhost-try-")
	if err != nil {
		return nil, err
	}
	// If one cannot be read, its plugin is started instead.
	_ = copyManifests(filepath.Join(dir, supervisor.Manifests), filepath.Join(stateDir, supervisor.Manifests))
	return &Trial{dir, func() error { return os.RemoveAll(dir) }}, nil
}

// copyManifests copies what is known of the plugins. The directory may belong to another account,
// which could have put anything there.
func copyManifests(to, from string) error {
	const most, size = 64, 4 << 20
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, entry := range entries[:min(len(entries), most)] {
		if !entry.Type().IsRegular() {
			continue
		}
		file, err := os.OpenFile(filepath.Join(from, entry.Name()), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		info, err := file.Stat()
		if err == nil && info.Mode().IsRegular() && info.Size() <= size {
			var text []byte
			if text, err = io.ReadAll(io.LimitReader(file, size)); err == nil {
				err = os.WriteFile(filepath.Join(to, entry.Name()), text, 0o600)
			}
		}
		_ = file.Close() // it was only read
		if err != nil {
			return err
		}
	}
	return nil
}

// Close ends the trial.
func (t *Trial) Close() error { return t.giveBack() }

// Known returns the configuration with the tools that the trial has learned, for [CheckRules]
// and [Warnings].
func (t *Trial) Known(cfg *config.Config) *config.Config {
	known := *cfg
	known.StateDir = t.dir
	return &known
}

// Schema returns the JSON Schema of a plugin's settings. If the schema is not known, it
// starts the plugin. The error says why the plugin does not start.
func (t *Trial) Schema(ctx context.Context, stateDir string, p supervisor.Plugin) ([]byte, error) {
	if schema, known := supervisor.KnownSchema(t.dir, p); known {
		return schema, nil
	}
	launcher, err := sandbox.NewLauncher()
	if err != nil {
		return nil, err
	}
	schema, err := supervisor.LearnSchema(ctx, supervisor.Options{Launcher: launcher, StateDir: t.dir, Hidden: []string{stateDir}}, p)
	if err := errors.Join(err, launcher.Close()); err != nil {
		return nil, err
	}
	return schema, nil
}

// Learn starts the plugins whose tools are not known, and returns the state of each plugin.
// The error is about their settings, or about the machine. opts.Load is not needed.
func (t *Trial) Learn(ctx context.Context, opts Options) ([]httpapi.Plugin, error) {
	toRun, _ := enabled(opts.Config.Plugins, lock.Lock{})
	for i := range toRun {
		toRun[i].Eager = false
	}
	return t.start(ctx, opts, toRun, func(*supervisor.Supervisor) {})
}

// All starts every plugin, and returns the state of each, like [Trial.Learn].
func (t *Trial) All(ctx context.Context, opts Options) ([]httpapi.Plugin, error) {
	toRun, _ := enabled(opts.Config.Plugins, lock.Lock{})
	return t.start(ctx, opts, toRun, func(s *supervisor.Supervisor) { startAll(ctx, s) })
}

// start starts plugins, and stops them when more has returned.
func (t *Trial) start(ctx context.Context, opts Options, plugins []supervisor.Plugin, more func(*supervisor.Supervisor)) (states []httpapi.Plugin, err error) {
	launcher, err := sandbox.NewLauncher()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, launcher.Close()) }()
	_, toList := enabled(opts.Config.Plugins, lock.Lock{})
	var tools *catalog.Catalog
	accepted, err := lock.File{Path: opts.Config.Lock, StateDir: opts.Config.StateDir}.Load()
	if err != nil {
		return nil, err
	}
	if tools, err = listing(opts, toList, accepted.Lock); err != nil {
		return nil, err
	}
	for i := range plugins {
		from := accepted.Plugins[plugins[i].Name].Package
		plugins[i].Verify, plugins[i].Runs = install.Verifier(from), string(from)
	}
	s, err := supervisor.New(supervisor.Options{
		Plugins: plugins, Launcher: launcher, StateDir: t.dir, Workspace: opts.Config.Workspace, Version: opts.Version,
		Hidden: opts.Config.Hidden,
		Logger: opts.Logger, Redact: opts.Config.Hide,
		Publish: func(p supervisor.Publication) (sound bool) {
			if err := publish(tools, p); err != nil {
				opts.Logger.Error("tools are not listed", "error", err)
			}
			return tools.Sound(p.Plugin)
		},
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	more(s)
	return httpapi.NewPlugins(s.Plugins(), tools.Entries(), tools.Refused()), nil
}

// startAll starts the plugins that do not run and have not failed. The state of a plugin says
// why it cannot start.
func startAll(ctx context.Context, s *supervisor.Supervisor) {
	var starts sync.WaitGroup
	for _, p := range s.Plugins() {
		if p.PID == 0 && p.Refused == "" && p.LastCrash == nil {
			starts.Go(func() { _ = s.Restart(ctx, p.Name) }) // ends with the start
		}
	}
	starts.Wait()
}

// Try starts every plugin of a configuration in a trial of its own: see [Trial.All].
func Try(ctx context.Context, opts Options) (plugins []httpapi.Plugin, err error) {
	trial, err := NewTrial(opts.Config.StateDir, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, trial.Close()) }()
	return trial.All(ctx, opts)
}
