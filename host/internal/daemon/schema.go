package daemon

import (
	"context"
	"errors"

	"github.com/toolhost/toolhost/host/internal/sandbox"
	"github.com/toolhost/toolhost/host/internal/supervisor"
)

// KnownSchema returns the JSON Schema of a plugin's settings as an earlier
// start has shown it, and whether it is known. It starts nothing.
func KnownSchema(stateDir string, p supervisor.Plugin) (schema []byte, known bool) {
	return supervisor.KnownSchema(stateDir, p)
}

// CheckBinary looks at the program of a plugin as a start does. It starts
// nothing. The error says to an operator what is wrong and what to do.
func CheckBinary(p supervisor.Plugin) error { return supervisor.CheckBinary(p) }

// LearnSchema returns the JSON Schema of a plugin's settings and starts the
// plugin for that if it is not known. The error says why the plugin does not
// start.
func LearnSchema(ctx context.Context, stateDir string, p supervisor.Plugin) ([]byte, error) {
	if schema, known := KnownSchema(stateDir, p); known {
		return schema, nil
	}
	launcher, err := sandbox.NewLauncher()
	if err != nil {
		return nil, err
	}
	schema, err := supervisor.LearnSchema(ctx, supervisor.Options{Launcher: launcher, StateDir: stateDir}, p)
	if err := errors.Join(err, launcher.Close()); err != nil {
		return nil, err
	}
	return schema, nil
}
