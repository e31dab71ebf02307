package daemon

import (
	"context"
	"errors"

	"github.com/toolhost/toolhost/host/internal/sandbox"
	"github.com/toolhost/toolhost/host/internal/supervisor"
)

// SettingsSchema returns the JSON Schema of a plugin's settings: the one that
// is known from an earlier start or, if start is set, by starting the plugin.
// known is false without an error if it was never started.
func SettingsSchema(ctx context.Context, stateDir string, p supervisor.Plugin, start bool) (schema []byte, known bool, err error) {
	if schema, known := supervisor.KnownSchema(stateDir, p); known || !start {
		return schema, known, nil
	}
	launcher, err := sandbox.NewLauncher()
	if err != nil {
		return nil, false, err
	}
	schema, err = supervisor.LearnSchema(ctx, supervisor.Options{Launcher: launcher, StateDir: stateDir}, p)
	if err := errors.Join(err, launcher.Close()); err != nil {
		return nil, false, err
	}
	return schema, true, nil
}
