package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/internal/excerpt"
	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk/tool"
)

// wire speaks the plugin contract with one process. Only files named wire*.go use
// the generated types.
type wire struct {
	conn    *grpc.ClientConn
	client  toolpluginv1.PluginServiceClient
	tickets *tickets
	secret  SecretFunc // nil: calls get no secrets
	changed ChangedFunc
}

// wirePlugin makes a wire of go-plugin's connection.
type wirePlugin struct{ plugin.NetRPCUnsupportedPlugin }

var _ plugin.GRPCPlugin = wirePlugin{}

// GRPCServer implements [plugin.GRPCPlugin] for the plugin's side. The host has no
// use for it.
func (wirePlugin) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("the host serves no plugin")
}

// GRPCClient implements [plugin.GRPCPlugin].
func (wirePlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return &wire{conn: conn, client: toolpluginv1.NewPluginServiceClient(conn)}, nil
}

// Description is what a plugin reports about itself.
type Description struct {
	Version string
	// Capabilities are the optional methods of the contract that it has.
	Capabilities []string
	// Schema is the JSON Schema of its settings, empty if it has none.
	Schema []byte
	// Tools are its tools before it is configured.
	Tools []tool.Spec
}

// Describe asks the plugin to describe itself. It refuses a plugin whose name is neither the
// name of its block nor the name of its file. The error is as in [Process.Start].
func (p *Process) Describe(ctx context.Context, hostVersion string) (Description, error) {
	res := new(toolpluginv1.DescribeResponse)
	var tools []tool.Spec
	err := p.phase(ctx, "Describe", func(ctx context.Context) (err error) {
		if err = p.wire.describe(ctx, hostVersion, res); err != nil {
			return err
		}
		tools, err = specsFrom(res.GetTools())
		return err
	})
	if err != nil {
		return Description{}, err
	}
	block, file := p.name(), filepath.Base(p.opts.Profile.Path)
	if name := res.GetName(); name != block && name != file {
		return Description{}, refuse("it has another name",
			"the program says that it is %q, expected %q (its plugin block) or %q (its file): rename the block or use another program",
			excerpt.Head(cleanLine(name), maxShort), block, file)
	}
	return Description{
		Version:      cleanLine(excerpt.Head(res.GetVersion(), maxShort)),
		Capabilities: res.GetCapabilities(),
		Schema:       res.GetSettingsSchemaJson(),
		Tools:        tools,
	}, nil
}

func (w *wire) describe(ctx context.Context, hostVersion string, res *toolpluginv1.DescribeResponse) error {
	return w.unary(ctx, toolpluginv1.PluginService_Describe_FullMethodName, &toolpluginv1.DescribeRequest{HostVersion: hostVersion}, res)
}

// Diagnostic is a message of a plugin about its settings.
type Diagnostic struct {
	// Warning is set if the plugin works nevertheless.
	Warning bool
	// Unavailable is set if the plugin may work later with the same settings.
	Unavailable bool
	// Text is one line.
	Text string
	// Path leads to the setting.
	Path []string
}

// Configure passes the settings and the state directory to the plugin. It returns
// the tools that these settings lead to, none if they are those of its
// description. The error is as in [Process.Start].
func (p *Process) Configure(ctx context.Context, settings []byte, stateDir string) (tools []tool.Spec, diagnostics []Diagnostic, err error) {
	res := new(toolpluginv1.ConfigureResponse)
	err = p.phase(ctx, "Configure", func(ctx context.Context) (err error) {
		err = p.wire.unary(ctx, toolpluginv1.PluginService_Configure_FullMethodName, &toolpluginv1.ConfigureRequest{
			StateDir:         stateDir,
			ScratchDir:       p.scratch,
			MemoryLimitBytes: uint64(p.opts.Profile.Limits.Memory),
			NoNetwork:        !p.hasNetwork(),
			Proxy:            p.proxyURL(),
			Name:             p.name(),
			SettingsJson:     settings,
		}, res)
		if err != nil {
			return err
		}
		tools, err = specsFrom(res.GetTools())
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	for _, d := range res.GetDiagnostics() {
		text := d.GetSummary()
		if d.GetDetail() != "" {
			text += ": " + d.GetDetail()
		}
		diagnostics = append(diagnostics, Diagnostic{
			Warning:     d.GetSeverity() == toolpluginv1.Diagnostic_SEVERITY_WARNING,
			Unavailable: d.GetSeverity() == toolpluginv1.Diagnostic_SEVERITY_UNAVAILABLE,
			Text:        cleanLine(excerpt.Head(text, maxMessage)),
			Path:        d.GetPath(),
		})
	}
	return tools, diagnostics, nil
}

// unary makes a call with one answer. An answer that cannot be decoded is
// errNonsense; the generated methods do not tell.
func (w *wire) unary(ctx context.Context, method string, request, response proto.Message) error {
	received := &answer{message: response}
	if err := w.conn.Invoke(ctx, method, request, received); err != nil {
		return err
	}
	return received.err
}

var (
	// errNonsense marks answers that the contract does not allow.
	errNonsense = errors.New("not a valid answer")
	// errNotSendable marks a call that the host could not encode.
	errNotSendable = errors.New("the call cannot be sent")
	// errTooLarge marks a message that is larger than allowed.
	errTooLarge = errors.New("sent too large a message")
)

// ErrLost is the error of a call whose connection broke: the process has ended, or
// is about to.
var ErrLost = errors.New("the connection to the plugin broke")

// Fate is the progress of a call when the host stops waiting for it.
type Fate int

// The fates of a call.
const (
	// Unsent: the plugin has certainly not seen the call.
	Unsent Fate = iota
	// Running: the plugin may still work on it.
	Running
	// Ended: the call has ended, or its connection has.
	Ended
)

// Call executes a call and returns its result. When ctx ends, Call tells the plugin
// to stop and returns at once. The plugin sees no deadline: the host may stop its
// clock while a person is asked.
//
// The error is a [*tool.Error] if the plugin broke the contract or the call was too
// large; otherwise it wraps [ErrLost], or ctx has ended.
func (p *Process) Call(ctx context.Context, call tool.Call, sink tool.Sink) (tool.Result, Fate, error) {
	callCtx, stop := withoutDeadline(ctx)
	defer stop()
	ticket, revoke := p.tickets.issue(callCtx, &call, &sink)
	defer revoke()
	call.Context.Ticket = ticket
	result, fate, err := p.wire.call(callCtx, call, sink)
	if err != nil {
		err = p.callError(ctx, call, err)
	}
	return result, fate, err
}

// Preview asks what a call would do. Context and errors are those of
// [Process.Call], and a [*tool.Error] may be the plugin's own. The plugin gets no
// ticket: a preview has no authority.
func (p *Process) Preview(ctx context.Context, call tool.Call) (tool.Preview, Fate, error) {
	callCtx, stop := withoutDeadline(ctx)
	defer stop()
	call.Context.Ticket = nil
	_, revoke := p.tickets.issue(callCtx, &call, &tool.Sink{}) // the host knows whose connections it makes
	defer revoke()
	preview, fate, err := p.wire.preview(callCtx, call)
	if _, own := errors.AsType[*tool.Error](err); err != nil && !own {
		err = p.callError(ctx, call, err)
	}
	return preview, fate, err
}

// withoutDeadline returns a context that ends when ctx does, but has no deadline
// that gRPC would send to the plugin. stop frees its resources.
func withoutDeadline(ctx context.Context) (_ context.Context, stop func()) {
	ended, cancel := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, cancel)
	return ended, func() {
		forget()
		cancel()
	}
}

// send opens the stream of a method and sends its one request. limit bounds each
// message of the answer.
func (w *wire) send(ctx context.Context, desc *grpc.StreamDesc, method string, request proto.Message, limit tool.ByteSize) (grpc.ClientStream, Fate, error) {
	// The generated method does not tell a stream that could not be opened from a
	// request that may have arrived.
	stream, err := w.conn.NewStream(ctx, desc, method, grpc.MaxCallRecvMsgSize(int(limit)))
	if err != nil {
		return nil, Unsent, err
	}
	// io.EOF means that the stream has ended; receiving returns the reason. Any
	// other error is the host's, before it has sent anything.
	if err := stream.SendMsg(request); err != nil && !errors.Is(err, io.EOF) {
		return nil, Unsent, fmt.Errorf("%w: %w", errNotSendable, err)
	}
	if err := stream.CloseSend(); err != nil {
		return nil, Running, err
	}
	return stream, Running, nil
}

// call executes a call. Its error is one of those above or comes from gRPC.
func (w *wire) call(ctx context.Context, call tool.Call, sink tool.Sink) (tool.Result, Fate, error) {
	stream, fate, err := w.send(ctx, &grpc.StreamDesc{ServerStreams: true}, toolpluginv1.PluginService_Call_FullMethodName,
		callRequest(call), maxAnswer(call.Context.MaxOutput))
	if err != nil {
		return tool.Result{}, fate, err
	}
	var last *toolpluginv1.Result
	for {
		response := new(toolpluginv1.CallResponse)
		received := &answer{message: response}
		err := stream.RecvMsg(received)
		switch {
		case errors.Is(err, io.EOF) && last == nil:
			return tool.Result{}, Ended, fmt.Errorf("%w: it ended the call without a result", errNonsense)
		case errors.Is(err, io.EOF):
			result, err := resultFrom(last)
			return result, Ended, err
		case status.Code(err) == codes.ResourceExhausted:
			return tool.Result{}, Running, fmt.Errorf("%w: %w", errTooLarge, err)
		case err != nil && ctx.Err() != nil:
			return tool.Result{}, Running, err
		case err != nil:
			return tool.Result{}, Ended, err
		case received.err != nil:
			return tool.Result{}, Running, received.err
		}
		switch event := response.GetEvent().(type) {
		case *toolpluginv1.CallResponse_Progress:
			emitProgress(sink, event.Progress)
		case *toolpluginv1.CallResponse_Chunk:
			emitChunk(sink, event.Chunk)
		case *toolpluginv1.CallResponse_Result:
			if last != nil {
				return tool.Result{}, Running, fmt.Errorf("%w: it sent two results", errNonsense)
			}
			last = event.Result
		default:
			// An event that a later version of the contract adds.
		}
	}
}

// preview asks what a call would do. Its error is a [*tool.Error] of the plugin, or
// as that of [wire.call].
func (w *wire) preview(ctx context.Context, call tool.Call) (tool.Preview, Fate, error) {
	request := callRequest(call)
	stream, fate, err := w.send(ctx, new(grpc.StreamDesc), toolpluginv1.PluginService_Preview_FullMethodName, &toolpluginv1.PreviewRequest{
		Context: request.GetContext(), Tool: request.GetTool(), ArgumentsJson: request.GetArgumentsJson(),
	}, maxAnswer(call.Context.MaxOutput))
	if err != nil {
		return tool.Preview{}, fate, err
	}
	response := new(toolpluginv1.PreviewResponse)
	received := &answer{message: response}
	err = stream.RecvMsg(received)
	switch {
	case err != nil && ctx.Err() != nil:
		return tool.Preview{}, Running, err
	case errors.Is(err, io.EOF):
		return tool.Preview{}, Ended, fmt.Errorf("%w: it ended the preview without an answer", errNonsense)
	case status.Code(err) == codes.ResourceExhausted:
		return tool.Preview{}, Ended, fmt.Errorf("%w: %w", errTooLarge, err)
	case err != nil:
		return tool.Preview{}, Ended, err
	case received.err != nil:
		return tool.Preview{}, Ended, received.err
	}
	preview, err := previewFrom(response)
	return preview, Ended, err
}

// callError turns the error of a call into what [Process.Call] promises.
func (p *Process) callError(ctx context.Context, call tool.Call, err error) error {
	name, cause := p.name(), p.printable(err)
	switch code := status.Code(err); {
	case ctx.Err() != nil:
		return cause
	case errors.Is(err, errNotSendable) && code == codes.ResourceExhausted:
		return tool.Errorf(tool.ResourceExhausted, "the call is larger than %v", tool.ByteSize(toolpluginv1.MaxMessageBytes)).
			WithHint("send less at once").WithCause(cause)
	case errors.Is(err, errNotSendable):
		return tool.Errorf(tool.Internal, "internal error").WithCause(cause)
	case errors.Is(err, errNonsense):
		return tool.Errorf(tool.OutputInvalid, "the plugin %q broke the contract: %v", name, cause).
			WithHint("this is a mistake in the plugin: tell its author").WithCause(cause)
	case errors.Is(err, errTooLarge):
		return tool.Errorf(tool.ResourceExhausted, "the result of the plugin %q is larger than %v", name, maxAnswer(call.Context.MaxOutput)).
			WithHint("ask for less at once").WithCause(cause)
	case answered(err), p.answers(ctx): // otherwise the plugin made up the code of a broken connection
		p.opts.Logger.Warn("the plugin answered with a protocol error instead of a result", "call", call.ID, "tool", call.Tool, "error", cause)
		return tool.Errorf(tool.OutputInvalid, "the plugin %q answered with a protocol error (%v) instead of a result", name, code).
			WithHint("this is a mistake in the plugin: its author finds the error in the host's log").WithCause(cause)
	}
	return fmt.Errorf("%w: %w", ErrLost, cause)
}

// answered reports whether an error is an answer of a living plugin, and not the
// error of a broken connection or of a context.
func answered(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded, codes.Aborted:
		return false
	}
	return true
}

// answers reports whether the process answers a health check. The check of an
// ended process fails at once.
func (p *Process) answers(ctx context.Context) bool {
	if p.EndsWithin(0) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, p.opts.ProbeTimeout)
	defer cancel()
	return p.wire.healthy(ctx) == nil
}

// printable returns err as one line without secrets: the plugin's own words may be
// in it.
func (p *Process) printable(err error) error {
	return errors.New(p.opts.Redact(cleanLine(err.Error())))
}

// Healthy asks the standard health service, which go-plugin serves. A plugin that
// answers is alive, even if it has no such service.
func (p *Process) Healthy(ctx context.Context) error {
	if err := p.wire.healthy(ctx); err != nil {
		return p.printable(err)
	}
	return nil
}

func (w *wire) healthy(ctx context.Context) error {
	res, err := grpc_health_v1.NewHealthClient(w.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: plugin.GRPCServiceName})
	if err != nil {
		if answered(err) {
			return nil
		}
		return err
	}
	if res.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("the plugin says that it is %v", res.GetStatus())
	}
	return nil
}

// Drain returns when the plugin has finished its calls, or the one call with the
// given id if it is not "". The error is [context.DeadlineExceeded] if the plugin
// did not finish in time.
func (p *Process) Drain(ctx context.Context, call string) error {
	_, err := p.wire.client.Drain(ctx, &toolpluginv1.DrainRequest{CallId: call})
	return p.methodError(err)
}

// EndSession tells the plugin that a session has ended. The error is [ErrLost] if
// the process has ended.
func (p *Process) EndSession(ctx context.Context, id string) error {
	_, err := p.wire.client.EndSession(ctx, &toolpluginv1.EndSessionRequest{Session: id})
	return p.methodError(err)
}

// methodError makes an error of gRPC one of this package.
func (p *Process) methodError(err error) error {
	switch status.Code(err) {
	case codes.OK:
		return nil
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	case codes.Unavailable:
		return ErrLost
	}
	return p.printable(err)
}
