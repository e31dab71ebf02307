package daemon

import (
	"context"
	"errors"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
)

// LearnSchema returns the JSON Schema of a plugin's settings and starts the
// plugin for that if it is not known. The error says why the plugin does not
// start.
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
