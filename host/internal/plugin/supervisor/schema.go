package supervisor

import (
	"context"
	"errors"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/sdk/tool"
)

// KnownSchema returns the JSON Schema of a plugin's settings as it was learned
// when the plugin was last started, and whether it is known for the binary as
// it is now. It starts nothing.
func KnownSchema(stateDir string, p Plugin) (schema []byte, known bool) {
	m, err := loadManifest(manifestPath(stateDir, p.Name))
	if err != nil || m == nil {
		return nil, false
	}
	program, err := m.program(p)
	if err != nil {
		return nil, false
	}
	defer program.file.Close()
	return m.Schema, program.digest == m.Digest
}

// KnownTools returns the tools that a plugin offers, as they were learned when it was
// last started, and whether they are known for the binary as it is now and its
// settings. It starts nothing.
func KnownTools(stateDir string, p Plugin) (digest string, tools []tool.Spec, known bool) {
	m, err := loadManifest(manifestPath(stateDir, p.Name))
	if err != nil || m == nil {
		return "", nil, false
	}
	program, err := m.program(p)
	if err != nil {
		return "", nil, false
	}
	defer program.file.Close()
	settings, err := evaluate(p, m.Schema)
	if err != nil || program.digest != m.Digest || digestOf(settings) != m.Settings {
		return "", nil, false
	}
	return m.Digest, m.Tools, true
}

// errLearned ends a start that has told what was asked.
var errLearned = errors.New("the settings schema is known now")

// LearnSchema starts a plugin, asks it for the JSON Schema of its settings and
// ends it. Of the options it needs the launcher and the state directory. The
// error says to an operator why the plugin does not start.
func LearnSchema(ctx context.Context, opts Options, p Plugin) ([]byte, error) {
	var schema []byte
	learned := false
	p.Settings = func(s []byte) ([]byte, error) {
		schema, learned = s, true
		return nil, errLearned
	}
	opts.Plugins, opts.Publish, opts.Logger = []Plugin{p}, nil, hclog.NewNullLogger()
	s, err := New(opts)
	if err != nil {
		return nil, err
	}
	err = s.Restart(ctx, p.Name)
	if closeErr := s.Close(); closeErr != nil || !learned {
		return nil, errors.Join(err, closeErr)
	}
	return schema, nil
}
