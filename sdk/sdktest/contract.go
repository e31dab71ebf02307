package sdktest

import (
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
	// answerTimeout is what a tool has to refuse arguments that do not fit, or
	// to end after its caller gave up.
	answerTimeout = 5 * time.Second
	// callTimeout is what a call of [Options.Calls] has.
	callTimeout = time.Minute
	// concurrency is how often each of them runs at the same time.
	concurrency = 8
)

// Run checks that p keeps the contract and reports each [Finding] as an error
// of the test. Every tool is called with arguments that do not fit its schema;
// tools that are read_only also without any, unless a call of theirs is said to
// be endless. Give calls that must succeed in
// [Options.Calls]: their results are checked too.
func Run(t *testing.T, p *sdk.Plugin, options Options) {
	t.Helper()
	report(t, InProcess(p), options)
}

// RunBinary does what [Run] does with the plugin at path, in whatever
// language, and checks what only a process can do: its handshake, and that it
// ends when the host does. It starts the plugin several times.
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

// Finding is one way in which a plugin breaks the contract.
type Finding struct {
	// Check is what was looked at: start, describe, configure, tool,
	// arguments, call, concurrency, cancel, drain or exit.
	Check string
	// Tool is the tool that was looked at; "" if it is about the plugin.
	Tool string
	// Problem says what was seen and what was expected.
	Problem string
}

// String returns the finding as one line.
func (f Finding) String() string {
	if f.Tool == "" {
		return f.Check + ": " + f.Problem
	}
	return fmt.Sprintf("%s: tool %q: %s", f.Check, f.Tool, f.Problem)
}

// Check looks whether a plugin keeps the contract and returns what it does
// not; nothing means that it does. It takes some seconds at most, but for the
// time that [Options.Calls] take.
func Check(ctx context.Context, target Target, options Options) []Finding {
	return check(ctx, target, options, answerTimeout)
}

func check(ctx context.Context, target Target, options Options, patience time.Duration) []Finding {
	c := &checker{target: target, options: options, patience: patience}
	if !c.start(ctx) {
		return c.findings
	}
	defer func() { c.plugin.Close() }() // the last one: it may be replaced
	c.checkDescribe(ctx)
	c.checkTools()
	for _, step := range []func(context.Context){
		c.checkArguments, c.checkCalls, c.checkConcurrency, c.checkCancel, c.checkDrain, c.checkExit,
	} {
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
	patience time.Duration // with a plugin that should answer at once
	plugin   *Plugin
	tools    []tool.Spec
	findings []Finding
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

// reportEach reports the errors that were joined one by one.
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

// alive reports whether the plugin can still be called; a plugin that has died
// is started again, since its other tools want to be looked at.
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
	if first.GetVersion() == "" {
		c.report("describe", "", "the plugin has no version")
	}
	if raw := first.GetSettingsSchemaJson(); len(raw) > 0 {
		for _, problem := range inputProblems(raw) {
			c.report("describe", "", "settings schema: %s", problem)
		}
	}
}

// checkTools looks at what the plugin says about its tools, without calling
// them.
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
			bounded, cancel := within(ctx, c.patience)
			c.call(bounded, "arguments", Call{Tool: t.Name, Args: args}, t)
			cancel()
			if !c.alive(ctx) {
				return
			}
		}
	}
	missing := c.call(ctx, "arguments", Call{Tool: "no_such_tool"}, tool.Spec{Name: "no_such_tool"})
	if missing != nil && missing.GetError() == nil {
		c.report("arguments", "", "a call of a tool that it does not have succeeds")
	}
}

// misfits returns arguments for a tool that its schema refuses. A tool that
// changes nothing also gets none at all and one that it does not know, since
// nothing can go wrong if it takes them.
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
		bounded, cancel := within(ctx, callTimeout)
		result := c.call(bounded, "call", call, c.spec(call.Tool))
		cancel()
		if result != nil && result.GetError() != nil {
			c.report("call", call.Tool, "fails: %s: %s", result.GetError().GetCode(), result.GetError().GetMessage())
		}
	}
}

// checkConcurrency makes the same calls many times at once.
func (c *checker) checkConcurrency(ctx context.Context) {
	calls := slices.DeleteFunc(slices.Clone(c.options.Calls), func(call Call) bool { return call.Endless })
	if len(calls) == 0 {
		// Nothing that must succeed is known: let it refuse many calls.
		for _, t := range c.tools {
			for _, args := range c.misfits(t) {
				calls = append(calls, Call{Tool: t.Name, Args: args})
			}
		}
	}
	ctx, cancel := within(ctx, callTimeout)
	defer cancel()
	var wg sync.WaitGroup
	problems := make([][]string, len(calls)*concurrency)
	for n := range problems {
		wg.Go(func() { // ends with its call
			call := calls[n%len(calls)]
			_, problems[n] = c.plugin.observe(ctx, call, c.spec(call.Tool))
		})
	}
	wg.Wait()
	for n, list := range problems {
		for _, problem := range list {
			c.report("concurrency", calls[n%len(calls)].Tool, "%d calls at the same time: %s", len(problems), problem)
		}
	}
}

// checkCancel gives up calls, some as soon as they are made and some once they
// have said something. That none goes on shows when the plugin drains.
func (c *checker) checkCancel(ctx context.Context) {
	for _, call := range c.options.Calls {
		c.giveUp(ctx, call, false)
		c.giveUp(ctx, call, true)
	}
	if !c.drains(ctx) {
		c.report("cancel", "", "calls are still running %v after their callers gave up", c.patience)
	}
	// It takes no more calls now: go on with a new one.
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
		Context: contextToProto(tool.Call{Context: c.plugin.options.Context}), Tool: call.Tool, ArgumentsJson: raw,
	})
	if err == nil && running {
		// Whatever it says, it has begun.
		_, _ = stream.Recv()
	}
}

// drains reports whether the plugin comes to rest, if it can say so at all.
func (c *checker) drains(ctx context.Context) bool {
	if !slices.Contains(c.plugin.describe.GetCapabilities(), "drain") {
		return true
	}
	ctx, cancel := within(ctx, c.patience)
	defer cancel()
	err := c.plugin.Drain(ctx)
	return err == nil || ctx.Err() == nil
}

// checkDrain looks whether a plugin that drains refuses calls.
func (c *checker) checkDrain(ctx context.Context) {
	if len(c.tools) == 0 || !slices.Contains(c.plugin.describe.GetCapabilities(), "drain") {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	if err := c.plugin.Drain(ctx); err != nil {
		c.report("drain", "", "with no call running: %v", err)
		return
	}
	t := c.tools[0]
	result := c.call(ctx, "drain", Call{Tool: t.Name, Args: json.RawMessage(`{"no_such_argument":true}`)}, t)
	if result != nil && result.GetError().GetCode() != string(tool.Unavailable) {
		c.report("drain", t.Name, "a call after Drain ends with code %q, want %q", result.GetError().GetCode(), tool.Unavailable)
	}
}

// checkExit looks whether the process ends when the host is gone.
func (c *checker) checkExit(ctx context.Context) {
	run := c.plugin.process
	if run == nil {
		return
	}
	run.hangUp()
	timer := time.NewTimer(c.patience)
	defer timer.Stop()
	select {
	case <-run.ended:
	case <-ctx.Done():
	case <-timer.C:
		c.report("exit", "", "the process is still there %v after its standard input was closed; it would outlive a host that was killed", c.patience)
		run.kill()
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

// call makes one call and reports what is wrong with its answer. It returns
// nil if there was none.
func (c *checker) call(ctx context.Context, check string, call Call, t tool.Spec) *toolpluginv1.Result {
	result, problems := c.plugin.observe(ctx, call, t)
	for _, problem := range problems {
		c.report(check, call.Tool, "%s", problem)
	}
	return result
}
