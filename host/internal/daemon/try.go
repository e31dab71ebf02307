package daemon

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/state/store"
)

// Try starts every plugin of a configuration, returns the state of each, and stops them. If a
// host holds the state directory, the plugins get another one, so that the host is not
// disturbed. The error is about their settings, or about the machine. opts.Load is not
// needed.
func Try(ctx context.Context, opts Options) (plugins []httpapi.Plugin, err error) {
	dir, giveBack, err := tryDir(opts.Config.StateDir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, giveBack()) }()
	launcher, err := sandbox.NewLauncher()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, launcher.Close()) }()
	toRun, toList := enabled(opts.Config.Plugins)
	tools, err := listing(opts, toList)
	if err != nil {
		return nil, err
	}
	s, err := supervisor.New(supervisor.Options{
		Plugins: toRun, Launcher: launcher, StateDir: dir, Workspace: opts.Config.Workspace, Version: opts.Version,
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
	startAll(ctx, s)
	return httpapi.NewPlugins(s.Plugins(), tools.Entries(), tools.Refused()), nil
}

// tryDir returns the state directory if no host holds it, so that the tools of the plugins are
// saved there, or a temporary one.
func tryDir(stateDir string) (dir string, giveBack func() error, err error) {
	lock, err := store.Lock(stateDir)
	if err == nil {
		return stateDir, lock.Close, nil
	}
	if _, held := errors.AsType[*HeldError](err); !held {
		return "", nil, err
	}
	dir, err = os.MkdirTemp("", "toolhost-try-")
	return dir, func() error { return os.RemoveAll(dir) }, err
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

// LearnSchema returns the JSON Schema of a plugin's settings. If the schema is not known, it
// starts the plugin. The error says why the plugin does not start.
func LearnSchema(ctx context.Context, stateDir string, p supervisor.Plugin) ([]byte, error) {
	if schema, known := supervisor.KnownSchema(stateDir, p); known {
		return schema, nil
	}
	launcher, err := sandbox.NewLauncher()
	if err != nil {
		return nil, err
	}
	schema, err := supervisor.LearnSchema(ctx, supervisor.Options{Launcher: launcher, StateDir: stateDir, Hidden: []string{stateDir}}, p)
	if err := errors.Join(err, launcher.Close()); err != nil {
		return nil, err
	}
	return schema, nil
}
