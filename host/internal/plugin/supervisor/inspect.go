package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/workspace"
)

// CheckBinary checks the program of a plugin as a start does, and starts nothing. The error
// tells an operator the mistake and its remedy.
func CheckBinary(p Plugin) error {
	program, err := process.OpenProgram(p.Path, p.SHA256, new(process.Hashes))
	if err != nil {
		return err
	}
	program.Close()
	return nil
}

// KnownSchema returns the JSON Schema of a plugin's settings, as saved at its last
// start. It starts nothing. known is false if the program has changed since.
func KnownSchema(stateDir string, p Plugin) (schema []byte, known bool) {
	m, _, err := currentManifest(stateDir, p)
	if err != nil || m == nil {
		return nil, false
	}
	return m.Schema, true
}

// KnownTools returns the tools of a plugin, as saved at its last start, with the digest
// of its program. It starts nothing. known is false if the program or the settings
// have changed since.
func KnownTools(stateDir string, p Plugin) (tools Publication, known bool) {
	m, _, err := currentManifest(stateDir, p)
	if err != nil || m == nil {
		return Publication{}, false
	}
	settings, err := evaluate(p, m.Schema)
	if err != nil || conditionsOf(&p, settings) != m.Settings {
		return Publication{}, false
	}
	return Publication{Plugin: p.Name, Digest: m.Digest, Tools: m.Tools, Sound: m.soundFor(hostProgram())}, true
}

// errLearned ends a start that has returned the schema.
var errLearned = errors.New("the settings schema is known now")

// LearnSchema starts a plugin, asks for the JSON Schema of its settings and ends the
// plugin. It uses the launcher and the state directory of opts. The error tells an
// operator why the plugin does not start.
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

// ConfinedReader is [Confined] for the reader of a plugin with [Plugin.SplitTiers].
func ConfinedReader(ctx context.Context, opts Options, p Plugin) (report sandbox.Report, err error) {
	return confined(ctx, opts, p, true)
}

// Confined reports the confinement that a process of a plugin would get, and starts
// nothing. It uses the launcher, the workspace and the paths of opts; the state
// directory need not exist. The error tells an operator why the plugin would not
// start. If it is a [*sandbox.MissingError], the report is that of a start without
// the missing layers.
func Confined(ctx context.Context, opts Options, p Plugin) (report sandbox.Report, err error) {
	return confined(ctx, opts, p, false)
}

// confined is [Confined] or [ConfinedReader].
func confined(ctx context.Context, opts Options, p Plugin, reader bool) (report sandbox.Report, err error) {
	dir, err := os.MkdirTemp("/tmp", "toolhost-doctor-") // not $TMPDIR, as for the run directory
	if err != nil {
		return sandbox.Report{}, fmt.Errorf("make a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	stateDir := opts.StateDir
	opts.Plugins, opts.StateDir, opts.RunDir = []Plugin{p}, dir+"/state", dir+"/run"
	if opts.Workspace.PerUser() { // as for a user whose workspace is new
		made, err := workspace.Dirs{Parent: dir}.Make(ctx, "workspace", giveAway(ctx, dir+"/workspace"))
		if err != nil {
			return sandbox.Report{}, err
		}
		opts.Workspace = workspace.Dirs{Shared: made}
	}
	s, err := New(opts)
	if err != nil {
		return sandbox.Report{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	m := s.managers[p.Name]
	of := m.base
	if reader {
		of = m.newReader()
	}
	report, err = of.confined(ctx)
	for i, gap := range report.Missing { // name the directory that the operator knows
		report.Missing[i].Reason = strings.ReplaceAll(gap.Reason, opts.StateDir, stateDir)
	}
	if err != nil {
		err = m.base.redacted(err)
	}
	return report, err
}

// confined is [Confined] in a temporary state directory.
func (p *pool) confined(ctx context.Context) (sandbox.Report, error) {
	program, err := process.OpenProgram(p.plugin.Path, p.plugin.SHA256, &p.s.hashes)
	if err != nil {
		return sandbox.Report{}, err
	}
	defer program.Close()
	proc, err := p.newProcess(program)
	if err != nil {
		return sandbox.Report{}, err
	}
	defer proc.Discard()
	// A start gives the directory to the user that the plugin runs as. Try changes no
	// owner, so that user needs access.
	if err := os.Chmod(proc.StateDir(), 0o755); err != nil { //nolint:gosec // it is empty
		return sandbox.Report{}, err
	}
	return proc.Try(ctx)
}
