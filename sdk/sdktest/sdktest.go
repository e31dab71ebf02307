// Package sdktest calls plugins in tests as the host does, and checks the contract that
// every plugin must keep.
//
// [Start] serves a [sdk.Plugin] in the process of the test. [StartBinary] starts a
// plugin program in any language. Both use gRPC. [Run] and [RunBinary] check the
// contract and report each violation.
package sdktest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// startTimeout bounds starting, describing and configuring a plugin.
const startTimeout = 10 * time.Second

// Options are the options for starting and calling a plugin. The zero value works for
// a plugin that needs no settings.
type Options struct {
	// Settings is encoded as JSON and given to the plugin; nil means {}. Sizes
	// and durations may be strings with a unit, as in a configuration file:
	// map[string]any{"max_size": "1MiB", "wait": "10s"}.
	Settings any
	// Config is given to the plugin together with the settings. Missing directories
	// are created, and removed when the plugin stops.
	Config sdk.Config
	// Context describes the caller of all calls. Missing fields get defaults: a user
	// and a session; an attempt; an empty directory as the only root (an empty list
	// means no root) and a directory of the user, both removed when the plugin stops;
	// and a maximum output of 16 KiB, or that of the tool.
	Context tool.Context
	// Secrets are the secrets that the plugin is granted, by name.
	Secrets map[string]string
	// Answer answers questions to the user; false means that the user declines. Nil
	// declines all.
	Answer func(question string, schema json.RawMessage) (answer any, answered bool)
	// MayRun decides whether a part of a command tree may run; see [tool.Sink]. Nil
	// refuses all.
	MayRun func(e tool.Execution) *tool.Error
	// ToolsChanged is called when the plugin has changed its tools; see [sdk.SetRawTools]. It must not
	// wait for the plugin. May be nil.
	ToolsChanged func()
	// Env is added to the environment of a binary, as "KEY=value". The binary gets
	// nothing else of the environment of this process.
	Env []string
	// Limits are the resource limits of a binary.
	Limits Limits
	// Calls are calls that must succeed. [Run] makes them one by one and at the same
	// time, and checks their results.
	Calls []Call
}

// Call is a call of a tool.
type Call struct {
	Tool string
	// Args is encoded as JSON; nil means {}.
	Args any
	// Endless means that the call sends progress or output and then runs until it is
	// canceled. The contract suite only cancels it.
	Endless bool
}

// Plugin is a running plugin.
type Plugin struct {
	options  Options
	conn     *grpc.ClientConn
	client   toolpluginv1.PluginServiceClient
	process  *process // nil if it runs in this process
	describe *toolpluginv1.DescribeResponse
	toolsMu  sync.Mutex // guards tools
	tools    []*toolpluginv1.Tool
	stop     func()
	stopOnce sync.Once
}

// Start serves p in this process and configures it, and stops it when the test ends.
// The test fails if p has mistakes or refuses its settings.
func Start(tb testing.TB, p *sdk.Plugin, options Options) *Plugin {
	tb.Helper()
	return start(tb, InProcess(p), options)
}

// StartBinary starts the plugin at path as a host does, but without a sandbox, and
// configures it. It stops the plugin when the test ends.
func StartBinary(tb testing.TB, path string, options Options) *Plugin {
	tb.Helper()
	return start(tb, Binary(path), options)
}

func start(tb testing.TB, target Target, options Options) *Plugin {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	p, err := target.launch(ctx, options)
	if err != nil {
		tb.Fatalf("start plugin: %v", err)
	}
	tb.Cleanup(p.Close)
	if err := p.configure(ctx); err != nil {
		tb.Fatalf("configure plugin: %v", err)
	}
	return p
}

// Close stops the plugin. Calling Close again does nothing.
func (p *Plugin) Close() { p.stopOnce.Do(p.stop) }

// Stderr returns the last 64 KiB that a binary has written to standard error. It returns
// "" for a plugin in this process.
func (p *Plugin) Stderr() string {
	if p.process == nil {
		return ""
	}
	return p.process.log.String()
}

// Name returns the name that the plugin has reported.
func (p *Plugin) Name() string { return p.describe.GetName() }

// Tools returns the tools that the plugin has with its settings, or since it has changed them.
func (p *Plugin) Tools() []tool.Spec {
	p.toolsMu.Lock()
	defer p.toolsMu.Unlock()
	list := make([]tool.Spec, len(p.tools))
	for i, t := range p.tools {
		list[i] = specFromProto(t)
	}
	return list
}

// setTools replaces the tools, and tells the test.
func (p *Plugin) setTools(tools []*toolpluginv1.Tool) {
	p.toolsMu.Lock()
	p.tools = tools
	p.toolsMu.Unlock()
	if p.options.ToolsChanged != nil {
		p.options.ToolsChanged()
	}
}

// Call calls a tool and returns its result. args is encoded as JSON; nil means {}. Call
// does not check the arguments as the host does, so a test can pass wrong ones. If the
// plugin dies or breaks the contract, the result has the code [tool.PluginCrashed] or
// [tool.OutputInvalid].
func (p *Plugin) Call(ctx context.Context, name string, args any) tool.Result {
	raw, err := encode(args)
	if err != nil {
		return tool.ErrorResult(tool.Errorf(tool.InvalidArgument, "encode arguments: %v", err))
	}
	return p.Run(ctx, tool.Call{Tool: name, Arguments: raw}, tool.Sink{})
}

// Run makes the call c and passes its events to sink. Missing fields of c.Context are
// taken from [Options.Context]. See [Plugin.Call] for the result.
func (p *Plugin) Run(ctx context.Context, c tool.Call, sink tool.Sink) tool.Result {
	c = p.complete(c)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := p.client.Call(ctx, &toolpluginv1.CallRequest{
		Context: contextToProto(c), Tool: c.Tool, CommandTreeJson: c.CommandTree, Judged: judgedToProto(c.Judged), JudgedUntil: timestamppb.New(c.JudgedUntil), ArgumentsJson: c.Arguments,
	})
	if err != nil {
		return tool.ErrorResult(p.wireError(ctx, err))
	}
	var result *toolpluginv1.Result
	for {
		event, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && result == nil:
			return tool.ErrorResult(tool.Errorf(tool.OutputInvalid, "the plugin ended the call without a result"))
		case errors.Is(err, io.EOF):
			return resultFromProto(result)
		case err != nil:
			return tool.ErrorResult(p.wireError(ctx, err))
		case result != nil:
			return tool.ErrorResult(tool.Errorf(tool.OutputInvalid, "the plugin sent more after its result"))
		}
		switch e := event.GetEvent().(type) {
		case *toolpluginv1.CallResponse_Progress:
			if sink.Progress != nil {
				sink.Progress(progressFromProto(e.Progress))
			}
		case *toolpluginv1.CallResponse_Chunk:
			if sink.Chunk != nil {
				sink.Chunk(chunkFromProto(e.Chunk))
			}
		case *toolpluginv1.CallResponse_Result:
			result = e.Result
		default:
			return tool.ErrorResult(tool.Errorf(tool.OutputInvalid, "the plugin sent an empty event"))
		}
	}
}

// complete fills in the missing fields of a call.
func (p *Plugin) complete(c tool.Call) tool.Call {
	c.ID = cmp.Or(c.ID, "tc_sdktest")
	given, own := &c.Context, p.options.Context
	given.Session = cmp.Or(given.Session, own.Session)
	given.User = cmp.Or(given.User, own.User)
	given.Client = cmp.Or(given.Client, own.Client)
	given.Traceparent = cmp.Or(given.Traceparent, own.Traceparent)
	given.Attempt = cmp.Or(given.Attempt, own.Attempt)
	given.ApprovalID = cmp.Or(given.ApprovalID, own.ApprovalID)
	given.UserDir = cmp.Or(given.UserDir, own.UserDir)
	given.MaxOutput = cmp.Or(given.MaxOutput, own.MaxOutput, p.maxOutput(c.Tool))
	if given.PreviewDigest == nil {
		given.PreviewDigest = own.PreviewDigest
	}
	if given.Roots == nil {
		given.Roots = own.Roots
	}
	if given.Protected == nil {
		given.Protected = own.Protected
	}
	if given.Files == nil {
		given.Files = own.Files
	}
	if given.Ticket == nil {
		given.Ticket = own.Ticket
	}
	return c
}

// defaultMaxOutput is the maximum output of a tool that does not set its own.
const defaultMaxOutput = 40 * tool.KiB

func (p *Plugin) maxOutput(name string) tool.ByteSize {
	p.toolsMu.Lock()
	defer p.toolsMu.Unlock()
	for _, t := range p.tools {
		if t.GetName() == name && t.GetMaxOutputBytes() > 0 {
			return tool.ByteSize(t.GetMaxOutputBytes())
		}
	}
	return defaultMaxOutput
}

// Preview returns the preview of a call. args is encoded as JSON; nil means {}. If the
// tool fails, the error is a [*tool.Error].
func (p *Plugin) Preview(ctx context.Context, name string, args any) (tool.Preview, error) {
	raw, err := encode(args)
	if err != nil {
		return tool.Preview{}, fmt.Errorf("encode arguments: %w", err)
	}
	response, err := p.client.Preview(ctx, &toolpluginv1.PreviewRequest{
		Context: contextToProto(p.complete(tool.Call{Tool: name})), Tool: name, ArgumentsJson: raw,
	})
	if err != nil {
		return tool.Preview{}, p.wireError(ctx, err)
	}
	if response.GetError() != nil {
		return tool.Preview{}, errorFromProto(response.GetError())
	}
	return previewFromProto(response), nil
}

// Drain makes the plugin refuse new calls and waits for the running ones. It returns an
// error if ctx ends first.
func (p *Plugin) Drain(ctx context.Context) error {
	if _, err := p.client.Drain(ctx, &toolpluginv1.DrainRequest{}); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	return nil
}

// EndSession tells the plugin that a session has ended. It returns an error if the plugin has no
// such function ([sdk.Plugin.OnSessionEnd]).
func (p *Plugin) EndSession(ctx context.Context, session string) error {
	if !slices.Contains(p.describe.GetCapabilities(), "end_session") {
		return errors.New("end session: the plugin does not have the capability end_session")
	}
	if _, err := p.client.EndSession(ctx, &toolpluginv1.EndSessionRequest{Session: session}); err != nil {
		return fmt.Errorf("end session: %w", p.wireError(ctx, err))
	}
	return nil
}

// configure describes and configures the plugin, and opens the connection for its
// requests.
func (p *Plugin) configure(ctx context.Context) error {
	var err error
	if p.describe, err = p.client.Describe(ctx, &toolpluginv1.DescribeRequest{HostVersion: "sdktest"}); err != nil {
		return fmt.Errorf("describe: %w", p.wireError(ctx, err))
	}
	settings, err := encodeSettings(p.options.Settings, p.describe.GetSettingsSchemaJson())
	if err != nil {
		return err
	}
	config, err := p.directories()
	if err != nil {
		return err
	}
	request := &toolpluginv1.ConfigureRequest{
		StateDir: config.StateDir, ScratchDir: config.ScratchDir, Proxy: config.Proxy,
		MemoryLimitBytes: uint64(config.MemoryLimit), NoNetwork: config.NoNetwork, Name: config.Name, SettingsJson: settings,
	}
	response, err := p.client.Configure(ctx, request)
	if err != nil {
		return fmt.Errorf("configure: %w", p.wireError(ctx, err))
	}
	var refusals []error
	for _, d := range response.GetDiagnostics() {
		if d.GetSeverity() != toolpluginv1.Diagnostic_SEVERITY_WARNING {
			refusals = append(refusals, fmt.Errorf("settings %q: %s", d.GetPath(), d.GetSummary()))
		}
	}
	if p.tools = response.GetTools(); len(p.tools) == 0 {
		p.tools = p.describe.GetTools()
	}
	if len(refusals) == 0 {
		p.connect()
	}
	return errors.Join(refusals...)
}

// directories returns the configuration of the plugin. It creates the directories that
// the options do not name.
func (p *Plugin) directories() (sdk.Config, error) {
	config := p.options.Config
	config.Name = cmp.Or(config.Name, p.describe.GetName())
	parent, err := os.MkdirTemp("", "sdktest")
	if err != nil {
		return config, fmt.Errorf("make directories: %w", err)
	}
	stop := p.stop
	p.stop = func() {
		stop()
		// An error leaves files in a temporary directory, which does no harm.
		_ = os.RemoveAll(parent)
	}
	if p.options.Context.Roots == nil {
		workspace := filepath.Join(parent, "workspace")
		if err := os.Mkdir(workspace, 0o700); err != nil {
			return config, fmt.Errorf("make directories: %w", err)
		}
		p.options.Context.Roots = []string{workspace}
	}
	for name, directory := range map[string]*string{
		"state": &config.StateDir, "scratch": &config.ScratchDir, "user": &p.options.Context.UserDir,
	} {
		if *directory != "" {
			continue
		}
		*directory = filepath.Join(parent, name)
		if err := os.Mkdir(*directory, 0o700); err != nil {
			return config, fmt.Errorf("make directories: %w", err)
		}
	}
	return config, nil
}

// wireError returns the error for a failed request to the plugin.
func (p *Plugin) wireError(ctx context.Context, err error) *tool.Error {
	switch {
	case ctx.Err() != nil:
		return tool.Errorf(tool.Canceled, "the call was canceled").WithCause(err)
	case status.Code(err) == codes.Unavailable:
		return tool.Errorf(tool.PluginCrashed, "the plugin's process has ended: %s%s", status.Convert(err).Message(), p.lastWords()).WithCause(err)
	default:
		return tool.Errorf(tool.OutputInvalid, "the plugin answered with gRPC status %v: %s", status.Code(err), status.Convert(err).Message()).WithCause(err)
	}
}

// lastWords describes how the plugin's process has ended. The connection ends before the process and
// its output, so lastWords waits for both.
func (p *Plugin) lastWords() string {
	if p.process == nil {
		return ""
	}
	timer := time.NewTimer(endGrace)
	defer timer.Stop()
	select {
	case <-p.process.ended:
	case <-timer.C: // it has only closed its socket
	}
	return p.process.lastWords()
}

// encode returns the JSON of value; {} for nil, and for a nil map in it.
func encode(value any) (json.RawMessage, error) {
	raw, err := json.Marshal(value)
	if err == nil && string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	return raw, err
}
