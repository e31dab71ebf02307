package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

// Confined says what would be in force for a process of a plugin, and starts
// none. Of the options it needs the launcher, the workspace and the paths that are
// the host's; the state directory need not exist. The error says to an operator why
// the plugin would not start. If that is a [*sandbox.MissingError], the report is
// that of a start without what is missing.
func Confined(ctx context.Context, opts Options, p Plugin) (report sandbox.Report, err error) {
	dir, err := os.MkdirTemp("/tmp", "toolhost-doctor-") // not $TMPDIR, as for the run directory
	if err != nil {
		return sandbox.Report{}, fmt.Errorf("make a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	stateDir := opts.StateDir
	opts.Plugins, opts.StateDir, opts.RunDir = []Plugin{p}, dir+"/state", dir+"/run"
	s, err := New(opts)
	if err != nil {
		return sandbox.Report{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	report, err = s.keepers[p.Name].confined(ctx, dir)
	for i, gap := range report.Missing { // the one that an operator knows
		report.Missing[i].Reason = strings.ReplaceAll(gap.Reason, opts.StateDir, stateDir)
	}
	return report, err
}

// confined is [Confined] with all that is the host's below dir.
func (k *keeper) confined(ctx context.Context, dir string) (sandbox.Report, error) {
	program, err := openBinary(k.plugin, &k.s.hashes)
	if err != nil {
		return sandbox.Report{}, k.redacted(err)
	}
	defer program.file.Close()
	i, err := k.newInstance(program, instanceKey{plugin: k.plugin.Name, generation: 1, scope: sharedScope})
	if err != nil {
		return sandbox.Report{}, err
	}
	defer i.discard()
	profile := i.runner.profile
	for _, path := range append(profile.Own, profile.Tmp) {
		if !strings.HasPrefix(path, dir+"/") {
			continue
		}
		// A start makes them the user's that the plugin runs as; an attempt changes
		// no owner.
		if err := os.Chmod(path, 0o755); err != nil { //nolint:gosec // nothing is in them
			return sandbox.Report{}, err
		}
	}
	report, err := k.s.opts.Launcher.Try(ctx, profile)
	if err == nil {
		return report, nil
	}
	refused := k.redacted(notExecuted(err))
	if _, missing := errors.AsType[*sandbox.MissingError](err); !missing {
		return sandbox.Report{}, refused
	}
	profile.Confinement.WarnOnMissing = true
	if report, err = k.s.opts.Launcher.Try(ctx, profile); err != nil {
		return sandbox.Report{}, k.redacted(notExecuted(err))
	}
	return report, refused
}
