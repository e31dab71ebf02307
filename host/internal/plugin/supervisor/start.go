package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/internal/memlimit"
	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk/tool"
)

// launch starts a process and returns it ready for calls. Its error is a
// [*refusedError] if another attempt would fail in the same way, a
// [*crashError] if there was a process, or ctx's own. Then nothing of the
// process is left.
func (k *keeper) launch(ctx context.Context, scope string) (_ *instance, err error) {
	program, err := openBinary(k.plugin, &k.s.hashes)
	if err != nil {
		return nil, err
	}
	defer program.file.Close()

	generation, err := k.newGeneration(program)
	if err != nil {
		return nil, err
	}
	i, err := k.newInstance(program, instanceKey{plugin: k.plugin.Name, generation: generation, scope: scope})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			i.discard()
		}
		if refused, ok := errors.AsType[*refusedError](err); ok {
			refused.digest = program.digest
		}
		if ctx.Err() != nil && err != nil {
			err = context.Cause(ctx)
		}
	}()
	doom := context.AfterFunc(ctx, func() { i.runner.end("was stopped by the host while it started") })
	defer doom()

	if err := i.handshake(); err != nil {
		return nil, err
	}
	if err := i.phase(ctx, k.s.timing.start, "the connection", i.connect); err != nil {
		return nil, err
	}
	i.wire.secrets = k.plugin.Secrets
	k.setPhase(Configuring)
	settings, err := k.describe(ctx, i)
	if err != nil {
		return nil, err
	}
	if err := k.configure(ctx, i, settings); err != nil {
		return nil, err
	}
	k.remember(i, program, settings)
	return i, nil
}

// newInstance prepares all that a process needs, and starts nothing.
func (k *keeper) newInstance(program *binary, key instanceKey) (*instance, error) {
	config, certPEM, err := clientTLS(time.Now())
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(k.stateDir(), 0o700); err != nil {
		return nil, fmt.Errorf("make its state directory: %w", err)
	}
	scratch, err := os.MkdirTemp(k.s.run.path, "scratch")
	if err != nil {
		return nil, fmt.Errorf("make its scratch directory: %w", err)
	}
	i := &instance{
		key:     key,
		log:     k.log,
		digest:  program.digest,
		scratch: scratch,
		// A mount keeps what it was for the process, whatever becomes of it outside.
		readOnly: k.s.readOnly(k.s.opts.Workspace),
		stop:     make(chan struct{}),
		ended:    make(chan struct{}),
		unused:   make(chan struct{}),
		gaveUp:   make(chan time.Duration, 1),
		runner: &processRunner{
			launcher:  k.s.opts.Launcher,
			log:       newPluginLog(k.log, k.s.opts.Redact),
			redact:    k.s.opts.Redact,
			connected: make(chan struct{}),
			limit:     k.s.timing.start,
			profile:   k.profile(program.file, scratch),
		},
	}
	i.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  toolpluginv1.Handshake(),
		VersionedPlugins: map[int]plugin.PluginSet{toolpluginv1.Version: {toolpluginv1.ServiceName: wirePlugin{}}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		TLSConfig:        config, // go-plugin adds the plugin's certificate to it
		StartTimeout:     k.s.timing.start,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: k.s.run.path},
		GRPCDialOptions:  dialOptions(),
		// Prints of the plugin that its go-plugin sends over gRPC instead.
		SyncStdout: lineWriter(i.runner.log.stdout),
		SyncStderr: lineWriter(i.runner.log.stdout),
		// What go-plugin has to say is said here with more knowledge.
		Logger: hclog.NewNullLogger(),
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, socketDir string) (runner.Runner, error) {
			i.runner.socketDir = socketDir
			i.runner.profile.Own = append(i.runner.profile.Own, socketDir)
			i.runner.profile.Env = append(k.environ(scratch), cmd.Env...)
			i.runner.profile.Env = append(i.runner.profile.Env, "PLUGIN_CLIENT_CERT="+string(certPEM))
			return i.runner, nil
		},
	})
	return i, nil
}

// profile says what to start and what it may do. Its socket comes to what it owns
// when that is known.
func (k *keeper) profile(program *os.File, scratch string) sandbox.Profile {
	opts := &k.s.opts
	p := sandbox.Profile{
		Binary: program, Path: k.plugin.Path, Name: k.plugin.Name, Dir: k.stateDir(),
		Limits: k.plugin.Limits, Confinement: k.plugin.Confinement,
		Workspace: opts.Workspace, Own: []string{k.stateDir()}, Tmp: scratch,
		Hidden: append([]string{opts.StateDir, k.s.run.path}, opts.Hidden...), Protected: k.plugin.Protected, Forbidden: k.plugin.Forbidden,
		Shared: k.s.shared(),
	}
	if p.Confinement.Workspace != sandbox.NoWorkspace || p.Confinement.Isolation == sandbox.Off {
		p.Dir = opts.Workspace
	}
	return p
}

// shared are the directories that some plugin may change.
func (s *Supervisor) shared() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var dirs []string
	for _, p := range s.plugins {
		dirs = append(dirs, p.Confinement.Write...)
		if p.Confinement.Workspace == sandbox.WriteWorkspace && s.opts.Workspace != "" {
			dirs = append(dirs, s.opts.Workspace)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// environ is what a plugin gets of an environment beside the contract's own
// variables. Nothing comes from the host's but what was asked for.
func (k *keeper) environ(scratch string) []string {
	env := []string{
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"LANG=C.UTF-8",
		"TMPDIR=" + scratch,
	}
	env = append(env, k.s.env...)
	if memory := k.plugin.Limits.Memory; memory > 0 {
		env = append(env, fmt.Sprintf("GOMEMLIMIT=%d", memlimit.Heap(int64(memory))))
	}
	for _, name := range append([]string{"TZ"}, k.plugin.PassEnv...) {
		value, ok := os.LookupEnv(name)
		if !ok || strings.HasPrefix(name, "PLUGIN_") || strings.HasPrefix(name, "TOOLHOST_") {
			continue
		}
		// Only one of each: which of two counts differs between programs.
		env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		env = append(env, name+"="+value)
	}
	return env
}

// handshake starts the process; [processRunner.Start] bounds it.
func (i *instance) handshake() error {
	_, err := i.client.Start()
	if err == nil {
		return nil
	}
	close(i.runner.connected)
	if i.runner.exited == nil {
		return notExecuted(err)
	}
	return err
}

// notExecuted says why there is no process. What the system lacked now it may
// have in a moment; all else stays as it is until somebody mends it.
func notExecuted(err error) error {
	if missing, ok := errors.AsType[*sandbox.MissingError](err); ok {
		return refuse("its sandbox cannot be had on this machine", "%w", missing)
	}
	for _, passing := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ETXTBSY, syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EINTR, context.DeadlineExceeded} {
		if errors.Is(err, passing) {
			return err
		}
	}
	return refuse("its program could not be executed", "%w", err)
}

// connect dials the process. go-plugin's dialling takes no context: when ctx
// ends, the caller kills the process, and that ends it.
func (i *instance) connect(ctx context.Context) error {
	dialled := make(chan error, 1)
	go func() { // ends when the process has, at the latest
		defer close(i.runner.connected)
		protocol, err := i.client.Client()
		if err != nil {
			dialled <- err
			return
		}
		raw, err := protocol.Dispense(toolpluginv1.ServiceName)
		if w, ok := raw.(*wire); ok {
			i.wire = w
		}
		dialled <- err
	}()
	select {
	case err := <-dialled:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// phase runs one step of a start within limit. If it fails because the
// process ended or did not answer, phase says so.
func (i *instance) phase(ctx context.Context, limit time.Duration, name string, step func(context.Context) error) error {
	tooSlow := fmt.Errorf("did not answer %s within %v", name, limit)
	stepCtx, cancel := context.WithTimeoutCause(ctx, limit, tooSlow)
	defer cancel()
	err := step(stepCtx)
	if err == nil {
		return nil
	}
	crashed := &crashError{}
	switch {
	case errors.Is(err, errNonsense):
		return refuse("it broke the contract in "+name, "%s: %w", name, err)
	case errors.Is(context.Cause(stepCtx), tooSlow), status.Code(err) == codes.DeadlineExceeded: // gRPC's clock may be the first
		i.runner.end(tooSlow.Error())
		crashed.slow = true
	case answered(err):
		i.runner.end("failed in " + name)
		crashed.wire = err
	case !within(exitGrace, i.runner.exited):
		i.runner.end("lost its connection during " + name)
		crashed.wire = err
	}
	if !within(deathTimeout, i.runner.exited) {
		return fmt.Errorf("process %s does not end although it was killed: %w", i.runner.ID(), err)
	}
	crashed.crash = i.runner.crash(name)
	return crashed
}

// answered reports whether an error is what a living plugin said, and not that
// of a broken connection or of a context.
func answered(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded, codes.Aborted:
		return false
	}
	return true
}

// describe learns what the plugin is and evaluates its settings.
func (k *keeper) describe(ctx context.Context, i *instance) (settings []byte, err error) {
	err = i.phase(ctx, k.s.timing.start, "Describe", func(ctx context.Context) error {
		about, err := i.wire.describe(ctx, k.s.opts.Version)
		if err == nil {
			i.about = *about
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	file := filepath.Base(k.plugin.Path)
	if name := i.about.Name; name != k.plugin.Name && name != file {
		return nil, refuse("it has another name",
			"the program says that it is %q, expected %q (its plugin block) or %q (its file): rename the block or use another program",
			cutText(cleanLine(name), maxShort), k.plugin.Name, file)
	}
	settings, err = k.settings(i.about.Schema)
	k.learn(learned{program: i.digest, schema: i.about.Schema, outcome: outcomeOf(settings, err)})
	if err != nil {
		return nil, err
	}
	return settings, nil
}

// settings evaluates the plugin's settings.
func (k *keeper) settings(schema []byte) ([]byte, error) { return evaluate(*k.own.Load(), schema) }

func evaluate(p Plugin, schema []byte) ([]byte, error) {
	if p.Settings == nil {
		return []byte("{}"), nil
	}
	settings, err := p.Settings(schema)
	if err != nil {
		return nil, refuse(wrongSettings, "settings: %w", err)
	}
	return settings, nil
}

// configure hands over the settings and learns the tools.
func (k *keeper) configure(ctx context.Context, i *instance, settings []byte) error {
	var tools []tool.Spec
	var diagnostics []diagnostic
	err := i.phase(ctx, k.s.timing.start, "Configure", func(ctx context.Context) (err error) {
		tools, diagnostics, err = i.wire.configure(ctx, environment{
			Settings:   settings,
			StateDir:   k.stateDir(),
			ScratchDir: i.scratch,
			Memory:     k.plugin.Limits.Memory,
		})
		return err
	})
	if err != nil {
		return err
	}
	if len(tools) > 0 {
		i.about.Tools = tools
	}
	var mistakes []error
	for _, d := range diagnostics {
		place := ""
		if locate := k.own.Load().Locate; locate != nil {
			place = locate(d.Path)
		}
		if d.Warning {
			k.log.Warn("the plugin warns about its settings", "place", place, "warning", k.s.opts.Redact(d.Text))
			continue
		}
		if place != "" {
			place += ": "
		}
		mistakes = append(mistakes, errors.New(place+d.Text))
	}
	if len(mistakes) > 0 {
		return refuse(wrongSettings, "%w", errors.Join(mistakes...))
	}
	return nil
}

// remember saves what was learned, so that the next host can list the tools
// without starting the plugin. A failure costs that time only.
func (k *keeper) remember(i *instance, program *binary, settings []byte) {
	m := manifest{
		Digest:   i.digest,
		Version:  i.about.Version,
		Tools:    i.about.Tools,
		Schema:   i.about.Schema,
		Settings: digestOf(settings),
	}
	if program.id.settled() {
		m.File = program.id
	}
	if err := m.save(manifestPath(k.s.opts.StateDir, k.plugin.Name)); err != nil {
		k.log.Warn("the plugin's tools cannot be kept for the next start", "error", err)
	}
}

// lineWriter makes a writer of a function for lines.
type lineWriter func(line []byte)

// Write takes what arrives as lines, though they may be cut anywhere.
func (f lineWriter) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		f(trimEnd([]byte(cutText(line, maxLogLine))))
	}
	return len(p), nil
}
