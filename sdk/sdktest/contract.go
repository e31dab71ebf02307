package sdktest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// answerTimeout bounds a call with wrong arguments, and the end of a call after it
	// was canceled.
	answerTimeout = 5 * time.Second
	// callTimeout bounds a call of [Options.Calls] if its tool has no timeout.
	callTimeout = 30 * time.Second
	// suiteTimeout bounds all checks. The result says if some did not run.
	suiteTimeout = 3 * time.Minute
	// concurrency is how often each call runs at the same time.
	concurrency = 8
)

// Run checks that p keeps the contract, and reports each [Finding] as an error of the
// test. It calls every tool with arguments that do not match the schema, and read_only
// tools also without arguments, unless they have an endless call. It makes the calls in
// [Options.Calls] and checks their results.
func Run(t *testing.T, p *sdk.Plugin, options Options) {
	t.Helper()
	report(t, InProcess(p), options)
}

// RunBinary does the same as [Run] with the plugin program at path, in any language. It
// also checks the handshake, and that the process ends when the host does. It starts the
// plugin several times.
func RunBinary(t *testing.T, path string, options Options) {
	t.Helper()
	report(t, Binary(path), options)
}

func report(t *testing.T, target Target, options Options) {
	t.Helper()
	for _, f := range Check(t.Context(), target, options) {
		t.Errorf("%s", f)
	}
}

// Finding is one violation of the contract.
type Finding struct {
	// Check is the part of the suite: start, describe, configure, health, tool,
	// arguments, call, concurrency, cancel, session, drain, shutdown,
	// exit or suite.
	Check string
	// Tool is the name of the tool; "" if the finding is about the plugin.
	Tool string
	// Problem describes what happened and what was expected.
	Problem string
}

// String returns the finding as one line.
func (f Finding) String() string {
	if f.Tool == "" {
		return f.Check + ": " + f.Problem
	}
	return fmt.Sprintf("%s: tool %q: %s", f.Check, f.Tool, f.Problem)
}

// Check checks whether a plugin keeps the contract, and returns the violations. It takes
// some seconds plus the time of [Options.Calls], and at most three minutes. A tool that
// kills the plugin or does not answer in time is not called again.
func Check(ctx context.Context, target Target, options Options) []Finding {
	return check(ctx, target, options, answerTimeout)
}

func check(ctx context.Context, target Target, options Options, patience time.Duration) []Finding {
	c := &checker{target: target, options: options, patience: patience, hopeless: map[string]bool{}}
	ctx, cancel := context.WithTimeoutCause(ctx, suiteTimeout, errors.New("the checks take too long"))
	defer cancel()
	if !c.start(ctx) {
		return c.findings
	}
	defer func() { c.plugin.Close() }() // the last one: it may be replaced
	c.checkDescribe(ctx)
	c.checkTools()
	for _, step := range []func(context.Context){
		c.checkHealth, c.checkArguments, c.checkCalls, c.checkConcurrency, c.checkCancel, c.checkSessions, c.checkDrain, c.checkShutdown, c.checkExit,
	} {
		if ctx.Err() != nil {
			c.report("suite", "", "the rest was not checked: %v", context.Cause(ctx))
			break
		}
		if !c.alive(ctx) {
			break
		}
		step(ctx)
	}
	return c.findings
}

type checker struct {
	target   Target
	options  Options
	patience time.Duration // how long a plugin may take that should answer at once
	plugin   *Plugin
	tools    []tool.Spec
	findings []Finding
	// hopeless are the tools that killed the plugin or did not answer. They are not
	// called again.
	hopeless map[string]bool
}

func (c *checker) report(check, toolName, format string, args ...any) {
	problem := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " ")
	f := Finding{Check: check, Tool: toolName, Problem: problem}
	if !slices.Contains(c.findings, f) {
		c.findings = append(c.findings, f)
	}
}

// start launches and configures the plugin and reports whether it can be
// called.
func (c *checker) start(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	p, err := c.target.launch(ctx, c.options)
	if err != nil {
		c.reportEach("start", err)
		return false
	}
	if err := p.configure(ctx); err != nil {
		c.reportEach("configure", err)
		p.Close()
		return false
	}
	c.plugin, c.tools = p, p.Tools()
	return true
}

// reportEach reports joined errors one by one.
func (c *checker) reportEach(check string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			c.reportEach(check, e)
		}
		return
	}
	if m, ok := errors.AsType[*sdk.DefinitionError](err); ok {
		c.report(check, m.Tool, "%s", strings.TrimPrefix(m.Field+": "+m.Reason, ": "))
		return
	}
	c.report(check, "", "%v", err)
}

// alive reports whether the plugin answers. It starts a plugin again that has died, to
// check its other tools.
func (c *checker) alive(ctx context.Context) bool {
	bounded, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	if _, err := c.plugin.client.Describe(bounded, &toolpluginv1.DescribeRequest{}); err == nil {
		return true
	}
	c.plugin.Close()
	return c.start(ctx)
}

func (c *checker) checkDescribe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	first := c.plugin.describe
	second, err := c.plugin.client.Describe(ctx, &toolpluginv1.DescribeRequest{HostVersion: "another"})
	if err != nil {
		c.report("describe", "", "the second time it fails: %v", c.plugin.wireError(ctx, err))
		return
	}
	if !proto.Equal(first, second) {
		c.report("describe", "", "it answers differently the second time; it must have no side effects")
	}
	if !tool.ValidPluginName(first.GetName()) {
		c.report("describe", "", "the plugin's name %q is not valid: expected a lower-case letter, then up to 63 of a-z, 0-9, _ and -", first.GetName())
	}
	if !sdk.ValidVersion(first.GetVersion()) {
		c.report("describe", "", "the plugin's version %q is not valid: expected a semantic version such as \"1.0.0\"", first.GetVersion())
	}
	if raw := first.GetSettingsSchemaJson(); len(raw) > 0 {
		for _, problem := range inputProblems(raw, false) {
			c.report("describe", "", "settings schema: %s", problem)
		}
	}
}

// checkTools checks the descriptions of the tools, without calling them.
func (c *checker) checkTools() {
	if len(c.tools) == 0 {
		c.report("tool", "", "the plugin has no tools")
	}
	owner := map[string]string{}
	for _, t := range c.tools {
		for _, problem := range specProblems(t) {
			c.report("tool", t.Name, "%s", problem)
		}
		for _, name := range append([]string{t.Name}, t.Aliases...) {
			if other, ok := owner[name]; ok {
				c.report("tool", t.Name, "the name %q is already taken by tool %q", name, other)
			}
			owner[name] = t.Name
		}
	}
}

// checkArguments calls every tool with arguments that the host would refuse.
func (c *checker) checkArguments(ctx context.Context) {
	for _, t := range c.tools {
		for _, args := range c.misfits(t) {
			c.call(ctx, "arguments", Call{Tool: t.Name, Args: args}, c.patience)
			if !c.alive(ctx) {
				return
			}
		}
	}
	missing := c.call(ctx, "arguments", Call{Tool: "no_such_tool"}, c.patience)
	if missing != nil && missing.GetError() == nil {
		c.report("arguments", "", "a call of a tool that it does not have succeeds")
	}
}

// misfits returns arguments that the schema of a tool refuses. A tool that changes
// nothing is also called without arguments and with an unknown one.
func (c *checker) misfits(t tool.Spec) []json.RawMessage {
	list := wrongTypes(t.InputSchema)
	endless := slices.ContainsFunc(c.options.Calls, func(call Call) bool { return call.Endless && call.Tool == t.Name })
	if t.Tier == tool.ReadOnly && !endless {
		list = append(list, json.RawMessage(`{}`), json.RawMessage(`{"no_such_argument":true}`))
	}
	return list
}

// checkCalls makes the calls that must succeed.
func (c *checker) checkCalls(ctx context.Context) {
	for _, call := range c.options.Calls {
		if call.Endless {
			continue
		}
		result := c.call(ctx, "call", call, cmp.Or(c.spec(call.Tool).Timeout, callTimeout))
		if result != nil && result.GetError() != nil {
			c.report("call", call.Tool, "fails: %s: %s", result.GetError().GetCode(), result.GetError().GetMessage())
		}
		if !c.alive(ctx) {
			return
		}
	}
}

// checkConcurrency makes the same calls many times at once.
func (c *checker) checkConcurrency(ctx context.Context) {
	calls := slices.Clone(c.options.Calls)
	if !slices.ContainsFunc(calls, func(call Call) bool { return !call.Endless }) {
		// There are no calls that must succeed, so make calls that must fail.
		for _, t := range c.tools {
			for _, args := range c.misfits(t) {
				calls = append(calls, Call{Tool: t.Name, Args: args})
			}
		}
	}
	calls = slices.DeleteFunc(calls, func(call Call) bool { return call.Endless || c.hopeless[call.Tool] })
	ctx, cancel := within(ctx, callTimeout)
	defer cancel()
	var wg sync.WaitGroup
	seen := make([]observation, len(calls)*concurrency)
	for n := range seen {
		wg.Go(func() { // ends with its call
			call := calls[n%len(calls)]
			seen[n] = c.plugin.observe(ctx, call, c.spec(call.Tool))
		})
	}
	wg.Wait()
	if n := slices.IndexFunc(seen, func(o observation) bool { return o.died }); n >= 0 {
		// All calls die with the process, so the cause is one of them.
		c.report("concurrency", "", "%d calls at the same time: %s", len(seen), seen[n].problems[len(seen[n].problems)-1])
		return
	}
	for n, o := range seen {
		for _, problem := range o.problems {
			c.report("concurrency", calls[n%len(calls)].Tool, "%d calls at the same time: %s", len(seen), problem)
		}
	}
}

// checkCancel cancels each call twice: at once, and after its first event. If a call
// still runs, the plugin does not drain.
func (c *checker) checkCancel(ctx context.Context) {
	for _, call := range c.options.Calls {
		if c.hopeless[call.Tool] {
			continue
		}
		c.giveUp(ctx, call, false)
		c.giveUp(ctx, call, true)
	}
	if !c.drains(ctx) {
		c.report("cancel", "", "calls are still running %v after their callers gave up", c.patience)
	}
	// A drained plugin refuses calls, so start it again.
	c.plugin.Close()
	c.start(ctx)
}

// giveUp makes a call and cancels it.
func (c *checker) giveUp(ctx context.Context, call Call, running bool) {
	raw, err := encode(call.Args)
	if err != nil {
		return // reported by checkCalls
	}
	ctx, cancel := within(ctx, c.patience)
	defer cancel()
	stream, err := c.plugin.client.Call(ctx, &toolpluginv1.CallRequest{
		Context: contextToProto(c.plugin.complete(tool.Call{Tool: call.Tool})), Tool: call.Tool, ArgumentsJson: raw,
	})
	if err == nil && running {
		// After the first event the call runs.
		_, _ = stream.Recv()
	}
}

// within bounds a call as the host does: by canceling it. A deadline of the
// context would be sent to the plugin.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(d, cancel)
	return ctx, func() {
		timer.Stop()
		cancel()
	}
}

func (c *checker) spec(name string) tool.Spec {
	for _, t := range c.tools {
		if t.Name == name {
			return t
		}
	}
	return tool.Spec{Name: name}
}

// call makes one call and reports what is wrong with its answer. The call takes at most
// patience, and at most the timeout of the tool. Without an answer, call returns nil.
func (c *checker) call(ctx context.Context, check string, call Call, patience time.Duration) *toolpluginv1.Result {
	if c.hopeless[call.Tool] {
		return nil
	}
	t := c.spec(call.Tool)
	if t.Timeout > 0 {
		patience = min(patience, t.Timeout)
	}
	ctx, cancel := within(ctx, patience)
	defer cancel()
	seen := c.plugin.observe(ctx, call, t)
	for _, problem := range seen.problems {
		c.report(check, call.Tool, "%s", problem)
	}
	if seen.died || seen.late {
		c.hopeless[call.Tool] = true
	}
	return seen.result
}
