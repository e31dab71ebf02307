package supervisor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/internal/digest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// attempt is a start in progress. Several callers may wait for it.
type attempt struct {
	cancel context.CancelCauseFunc
	claim  *claim        // for the memory of the process
	done   chan struct{} // closed when err is set
	err    error
}

// begin starts a process unless one is being started. The claim is for its memory; nil means that
// the process waits for none. The caller holds mu and has checked mayStart.
func (p *pool) begin(ctx context.Context, c *claim) *attempt {
	if p.starting != nil {
		return p.starting
	}
	if c == nil {
		p.skipTurn()
		c = p.s.memory.take(p.of.user, p.plugin.Limits.Memory)
	}
	// The start outlives the call that caused it: others may wait for it.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	a := &attempt{cancel: cancel, claim: c, done: make(chan struct{})}
	p.starting = a
	p.s.tasks.Go(func() { p.start(ctx, a) }) // bounded by its phases; Close waits
	return a
}

// start runs one attempt.
func (p *pool) start(ctx context.Context, a *attempt) {
	defer a.cancel(nil)
	defer close(a.done)
	i, saved, err := p.launch(ctx)
	if err == nil && p != p.base {
		if err = p.describeFirst(ctx, i.digest); err != nil {
			i.proc.Discard()
		}
	}
	if err != nil {
		a.err = p.redacted(err)
		p.free(a.claim)
		p.startEnded(ctx, a.err)
		return
	}
	i.claim = a.claim
	// The process outlives its start.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	disconnected := p.connect(life, i)
	if i.can("end_session") {
		i.sessions = make(chan string, maxEnded)
		p.s.tasks.Go(func() { p.tellSessions(life, i) }) // ends with the process; Close waits
	}
	tools := p.publication(i.digest, i.about.Tools)
	i.revision.Store(&tools.Digest)
	i.saved = saved
	if p == p.base { // a user may have influenced what the user's own process offers
		if p.found(tools) {
			saved.Sound = p.s.host
		}
		p.keep(saved) // what looks at publications may read it
		if p.publish(tools) {
			p.keepSound(saved)
		}
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	p.starting = nil
	p.instances[i.generation] = i
	p.refused = nil
	if p == p.base {
		p.digest, p.version = i.digest, i.about.Version
	}
	i.ready = time.Now()
	i.heard, i.lastUsed = i.ready, i.ready
	p.enterFor(i, Ready)
	switch {
	case p.closed() || p.replaced:
		p.retire(i)
	case p.stopped() != nil: // since it began to start
		p.kill(i)
	}
	p.retireOver()
	p.admit()        // the calls that waited for it may be gone
	if p == p.base { // its first tools are published
		p.s.tasks.Go(func() { p.takeChanges(life, i) }) // ends with the process; Close waits
	}
	p.s.tasks.Go(func() { // ends with the process; Close waits
		defer end()
		p.watch(life, i, disconnected)
	})
	report := i.proc.Sandboxed().Report
	if p.of.reader {
		p.ofReader = &report
	} else {
		p.report = &report
	}
	p.log.Info("plugin started", "pid", i.proc.PID(), "generation", i.generation, "version", i.about.Version, "tools", len(i.about.Tools))
	p.log.Debug("the plugin is confined", "sandbox", report.String())
	p.warnOfMissing(report)
}

// warnOfMissing logs the required layers that a process runs without, and whether
// some protected files were not searched for.
func (m *manager) warnOfMissing(r sandbox.Report) {
	var missing, remedies []string
	for _, gap := range r.Missing {
		if gap.Unsearched {
			m.log.Warn("the kernel does not protect all files that are protected or forbidden by name", "reason", gap.Reason, "remedy", gap.Remedy)
		}
		if !gap.Required {
			continue
		}
		missing = append(missing, gap.String())
		if gap.Remedy != "" && !slices.Contains(remedies, gap.Remedy) {
			remedies = append(remedies, gap.Remedy)
		}
	}
	if len(missing) > 0 {
		m.log.Warn("the plugin runs without layers that its sandbox requires", "missing", strings.Join(missing, ", "), "remedy", strings.Join(remedies, "; "))
	}
}

// launch starts a process and returns it ready for calls, with its manifest. The error is a
// [*process.RefusedError] if another attempt would fail in the same way, a
// [*process.StartError] if there was a process, or ctx's own. Then nothing of the
// process is left.
func (p *pool) launch(ctx context.Context) (_ *instance, _ *manifest, err error) {
	program, err := process.OpenProgram(p.plugin.Path, p.plugin.SHA256, &p.s.hashes)
	if err != nil {
		return nil, nil, err
	}
	defer program.Close()
	workspace, err := p.findWorkspace(ctx)
	if err != nil {
		return nil, nil, err
	}

	generation, err := p.nextGeneration(program)
	if err != nil {
		return nil, nil, err
	}
	if verify := p.latest.Load().Verify; verify != nil {
		if err := verify(); err != nil {
			return nil, nil, &process.RefusedError{Brief: "what it runs is not what was installed", Err: err, Digest: program.Digest}
		}
	}
	if !p.of.reader {
		if err := p.prove(ctx, program); err != nil {
			if refused, ok := errors.AsType[*process.RefusedError](err); ok {
				refused.Digest = program.Digest
			}
			return nil, nil, err
		}
	}
	proc, err := p.newProcess(program)
	if err != nil {
		return nil, nil, err
	}
	i := &instance{
		generation: generation, proc: proc, digest: program.Digest, stateDir: proc.StateDir(),
		// The process keeps its current mount, whatever happens to the path later.
		readOnly: p.s.readOnly(p.workspace), workspace: workspace,
		changes: newChanges(),
		stop:    make(chan struct{}), ended: make(chan struct{}), unused: make(chan struct{}), gaveUp: make(chan time.Duration, 1),
	}
	defer func() {
		if err != nil {
			proc.Discard()
		}
		if refused, ok := errors.AsType[*process.RefusedError](err); ok {
			refused.Digest = program.Digest
		}
		if ctx.Err() != nil && err != nil {
			err = context.Cause(ctx)
		}
	}()
	stop := context.AfterFunc(ctx, func() { proc.End("was stopped by the host while it started") })
	defer stop()

	if err := proc.Start(ctx); err != nil {
		return nil, nil, err
	}
	p.setPhase(Configuring)
	settings, err := p.describe(ctx, i)
	if err != nil {
		return nil, nil, err
	}
	if err := p.configure(ctx, i, settings); err != nil {
		return nil, nil, err
	}
	return i, p.manifestOf(i, program, settings), nil
}

// nextGeneration counts a process that is about to start. It returns the earlier
// refusal if a start of the same program was refused: another start would be too.
func (p *pool) nextGeneration(program *process.Program) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused != nil && p.refused.Digest == program.Digest {
		return 0, p.refused
	}
	p.generation++
	clear(p.userDirs) // a person may have removed one
	p.tried, p.triedFile = program.Digest, program.ID
	p.enter(Starting)
	return p.generation, nil
}

// newProcess prepares a process and starts nothing.
func (p *pool) newProcess(program *process.Program) (*process.Process, error) {
	own, err := p.ownDirs()
	if err != nil {
		return nil, fmt.Errorf("make its state directory: %w", err)
	}
	opts, plugin := &p.s.opts, &p.plugin
	profile := sandbox.Profile{
		Binary: program.File, Path: plugin.Path, Name: plugin.Name,
		Limits: plugin.Limits, Confinement: plugin.Confinement,
		Workspace: p.workspace, Own: own,
		Hidden: append([]string{opts.StateDir, p.s.run.Path}, opts.Hidden...), Protected: plugin.Protected, Forbidden: p.forbidden(),
		Shared: p.s.shared(),
	}
	if p != p.base {
		profile.Name += "-" + p.of.id() // it gives the process a user of its own, if the host is root
	}
	if p.of.reader {
		profile.Confinement = profile.Confinement.AsReader(plugin.ReaderNetwork)
	}
	switch c := &profile.Confinement; {
	case opts.Workspace.PerUser() && p.workspace == "": // it only describes the plugin
		c.Workspace, c.Protect = sandbox.NoWorkspace, nil
	case c.Workspace != sandbox.NoWorkspace || c.Isolation == sandbox.Off:
		profile.Dir = cmp.Or(p.workspace, "/")
	}
	return process.New(process.Options{
		Plugin:   plugin.Name,
		Launcher: opts.Launcher, Profile: profile, RunDir: p.s.run.Path,
		PassEnv: plugin.PassEnv, Env: p.s.env, Secret: p.secrets(), Network: p.network(),
		Logger: p.log, Redact: p.redact,
		StartTimeout: p.s.timing.start, ProbeTimeout: p.s.timing.probe,
	})
}

// shared returns the directories that any plugin may change.
func (s *Supervisor) shared() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var dirs []string
	for _, p := range s.plugins {
		dirs = append(dirs, p.Confinement.Write...)
		if top := s.opts.Workspace.Top(); p.Confinement.Workspace == sandbox.WriteWorkspace && top != "" {
			dirs = append(dirs, top)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// describe asks the plugin to describe itself, and evaluates its settings.
func (p *pool) describe(ctx context.Context, i *instance) (settings []byte, err error) {
	if i.about, err = i.proc.Describe(ctx, p.s.opts.Version); err != nil {
		return nil, err
	}
	settings, err = p.settings(i.about.Schema)
	if p != p.base {
		return settings, err
	}
	p.learn(learned{program: i.digest, schema: i.about.Schema, outcome: outcomeOf(&p.plugin, settings, err)})
	return settings, err
}

// settings evaluates the plugin's settings.
func (m *manager) settings(schema []byte) ([]byte, error) { return evaluate(*m.latest.Load(), schema) }

// wrongSettings is the brief of a refusal that the configuration causes.
const wrongSettings = "its settings are wrong"

func evaluate(p Plugin, schema []byte) ([]byte, error) {
	if p.Settings == nil {
		return []byte("{}"), nil
	}
	settings, err := p.Settings(schema)
	if err != nil {
		return nil, &process.RefusedError{Brief: wrongSettings, Err: fmt.Errorf("settings: %w", err)}
	}
	return settings, nil
}

// configure passes the settings to the plugin and takes its tools.
func (p *pool) configure(ctx context.Context, i *instance, settings []byte) error {
	tools, diagnostics, err := i.proc.Configure(ctx, settings, i.stateDir)
	if err != nil {
		return err
	}
	if len(tools) > 0 {
		i.about.Tools = tools
	}
	var mistakes, missing []error
	for _, d := range diagnostics {
		place := ""
		if locate := p.latest.Load().Locate; locate != nil {
			place = locate(d.Path)
		}
		if d.Warning {
			p.log.Warn("the plugin warns about its settings", "place", place, "warning", p.redact(d.Text))
			continue
		}
		if place != "" {
			place += ": "
		}
		if d.Unavailable {
			missing = append(missing, errors.New(place+d.Text))
			continue
		}
		mistakes = append(mistakes, errors.New(place+d.Text))
	}
	if len(mistakes) > 0 {
		return &process.RefusedError{Brief: wrongSettings, Err: errors.Join(mistakes...)}
	}
	if len(missing) > 0 {
		return &notNowError{errors.Join(missing...)}
	}
	return nil
}

// notNowError means that something that a plugin needs does not answer. Another attempt may succeed.
type notNowError struct{ err error }

func (e *notNowError) Error() string { return e.err.Error() }

func (e *notNowError) Unwrap() error { return e.err }

// publication returns the publication of the tools of a program with that digest. Its own
// digest covers the program and its tools, which its settings may change.
func (m *manager) publication(program string, tools []tool.Spec) Publication {
	// As JSON, because saving the tools changes the white space of their schemas.
	encoded, err := json.Marshal(tools)
	if err != nil { // the catalog will refuse them, and they cannot be saved
		encoded = fmt.Appendf(nil, "%+v", tools)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s", program, encoded)
	if slices.ContainsFunc(tools, func(spec tool.Spec) bool { return spec.Foreign }) {
		fmt.Fprintf(sum, "\n%s\n%s", m.plugin.Runs, m.evaluated())
	}
	return Publication{Plugin: m.plugin.Name, Digest: digest.Format(sum.Sum(nil)), Tools: tools, program: program}
}

// describeFirst makes sure that the tools which a program offers without a user are published
// before a user's process with this program takes calls.
func (m *manager) describeFirst(ctx context.Context, program string) error {
	if m.publishes(program) {
		return nil
	}
	return m.ensure(ctx)
}

// publish publishes tools, unless the host knows them already, and reports whether they are
// sound.
func (m *manager) publish(p Publication) (sound bool) {
	m.publishMu.Lock()
	defer m.publishMu.Unlock()
	m.tools = p.Tools
	if m.program != p.program {
		m.program = p.program
		m.retireOthers(p.program)
	}
	if m.held {
		m.pending = &p
	} else {
		m.announce(p)
	}
	return m.sound == p.Digest
}

// retireOthers stops the processes of users that run another program than the one whose tools are
// published.
func (m *manager) retireOthers(program string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.scoped {
		for _, i := range p.instances {
			if i.digest != program && !i.stopping {
				i.patience, i.why = m.s.timing.drain, "its program changed"
				p.retire(i)
			}
		}
	}
}

// found reports whether the host has found tools sound before.
func (m *manager) found(p Publication) bool {
	m.publishMu.Lock()
	defer m.publishMu.Unlock()
	return m.sound == p.Digest
}

// announce publishes tools unless the host knows them. The caller holds publishMu.
func (m *manager) announce(p Publication) {
	if m.published == p.Digest {
		return
	}
	m.published = p.Digest
	if m.s.opts.Publish(p) {
		m.sound = p.Digest
	}
}
