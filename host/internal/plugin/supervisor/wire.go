package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/toolhost/toolhost/internal/excerpt"
	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// Static windows: a 4 MB result takes half the time that it takes while
	// gRPC is still estimating.
	streamWindow     = 8 << 20
	connectionWindow = 16 << 20

	// maxTools bounds the tools of one plugin.
	maxTools = 1000
	// maxShort and maxMessage bound texts that are not a tool's output, in
	// bytes.
	maxShort   = 256
	maxMessage = 16 << 10
)

// wire speaks the contract with one process. It is the only place in the host
// that knows the generated types.
type wire struct {
	conn    *grpc.ClientConn
	client  toolpluginv1.PluginServiceClient
	tickets tickets
	secrets map[string]string // that calls may ask for, by name
}

// wirePlugin makes a wire of go-plugin's connection.
type wirePlugin struct{ plugin.NetRPCUnsupportedPlugin }

var _ plugin.GRPCPlugin = wirePlugin{}

// GRPCServer is the plugin's side, which the host is not.
func (wirePlugin) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("the host serves no plugin")
}

// GRPCClient implements [plugin.GRPCPlugin].
func (wirePlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return &wire{conn: conn, client: toolpluginv1.NewPluginServiceClient(conn)}, nil
}

func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(newCodec()),
			grpc.MaxCallRecvMsgSize(toolpluginv1.MaxMessageBytes),
			grpc.MaxCallSendMsgSize(toolpluginv1.MaxMessageBytes),
		),
		grpc.WithStaticStreamWindowSize(streamWindow),
		grpc.WithStaticConnWindowSize(connectionWindow),
	}
}

// description is what a plugin says of itself.
type description struct {
	Name         string
	Version      string
	SDK          string
	Capabilities []string
	Schema       []byte
	Tools        []tool.Spec
}

func (w *wire) describe(ctx context.Context, hostVersion string) (*description, error) {
	res := new(toolpluginv1.DescribeResponse)
	err := w.ask(ctx, toolpluginv1.PluginService_Describe_FullMethodName, &toolpluginv1.DescribeRequest{HostVersion: hostVersion}, res)
	if err != nil {
		return nil, err
	}
	tools, err := specsFrom(res.GetTools())
	if err != nil {
		return nil, err
	}
	return &description{
		Name:         res.GetName(),
		Version:      cleanLine(cutText(res.GetVersion(), maxShort)),
		SDK:          cutText(res.GetSdk(), maxShort),
		Capabilities: res.GetCapabilities(),
		Schema:       res.GetSettingsSchemaJson(),
		Tools:        tools,
	}, nil
}

// environment is what a process is configured with.
type environment struct {
	Settings   []byte
	StateDir   string
	ScratchDir string
	Memory     tool.ByteSize
}

// diagnostic is what a plugin says about its settings.
type diagnostic struct {
	Warning bool
	Text    string
	Path    []string
}

func (w *wire) configure(ctx context.Context, env environment) ([]tool.Spec, []diagnostic, error) {
	res := new(toolpluginv1.ConfigureResponse)
	err := w.ask(ctx, toolpluginv1.PluginService_Configure_FullMethodName, &toolpluginv1.ConfigureRequest{
		StateDir:         env.StateDir,
		ScratchDir:       env.ScratchDir,
		MemoryLimitBytes: uint64(env.Memory),
		SettingsJson:     env.Settings,
	}, res)
	if err != nil {
		return nil, nil, err
	}
	tools, err := specsFrom(res.GetTools())
	if err != nil {
		return nil, nil, err
	}
	var diagnostics []diagnostic
	for _, d := range res.GetDiagnostics() {
		text := d.GetSummary()
		if d.GetDetail() != "" {
			text += ": " + d.GetDetail()
		}
		diagnostics = append(diagnostics, diagnostic{
			Warning: d.GetSeverity() == toolpluginv1.Diagnostic_SEVERITY_WARNING,
			Text:    cleanLine(cutText(text, maxMessage)),
			Path:    d.GetPath(),
		})
	}
	return tools, diagnostics, nil
}

// ask makes a call that has one answer. An answer that cannot be decoded is
// errNonsense, which the generated methods do not tell.
func (w *wire) ask(ctx context.Context, method string, request, response proto.Message) error {
	received := &answer{message: response}
	if err := w.conn.Invoke(ctx, method, request, received); err != nil {
		return err
	}
	return received.err
}

// healthy asks the standard health service, which go-plugin serves. A plugin
// that answers is alive, even if it has no such service.
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

// drain returns when the plugin has finished its calls.
func (w *wire) drain(ctx context.Context) error {
	_, err := w.client.Drain(ctx, &toolpluginv1.DrainRequest{})
	return err
}

// drainCall returns when the plugin has finished one call, if it can tell.
func (w *wire) drainCall(ctx context.Context, id string) error {
	_, err := w.client.Drain(ctx, &toolpluginv1.DrainRequest{CallId: id})
	return err
}

// endSession tells the plugin that a session has ended.
func (w *wire) endSession(ctx context.Context, id string) error {
	_, err := w.client.EndSession(ctx, &toolpluginv1.EndSessionRequest{Session: id})
	return err
}

// errNonsense marks answers that the contract does not allow.
var errNonsense = errors.New("not a valid answer")

// errNotSendable marks what the host could not bring into a message.
var errNotSendable = errors.New("the call cannot be sent")

// errTooLarge marks a message that is larger than it may be.
var errTooLarge = errors.New("sent too large a message")

// fate is how far a call has come when the host stops waiting for it.
type fate int

const (
	unsent  fate = iota // the plugin has certainly not seen it
	running             // the plugin may still work on it
	ended               // it has ended, or its connection has
)

// send opens the stream of a method and sends its one request. limit bounds
// each message of the answer.
func (w *wire) send(ctx context.Context, desc *grpc.StreamDesc, method string, request proto.Message, limit tool.ByteSize) (grpc.ClientStream, fate, error) {
	// Not the generated method: it does not tell a stream that could not be
	// opened from a request that may have arrived.
	stream, err := w.conn.NewStream(ctx, desc, method, grpc.MaxCallRecvMsgSize(int(limit)))
	if err != nil {
		return nil, unsent, err
	}
	// io.EOF means that the stream has ended; receiving tells why. Any other
	// error is the host's own, from before it has sent anything.
	if err := stream.SendMsg(request); err != nil && !errors.Is(err, io.EOF) {
		return nil, unsent, fmt.Errorf("%w: %w", errNotSendable, err)
	}
	if err := stream.CloseSend(); err != nil {
		return nil, running, err
	}
	return stream, running, nil
}

// call carries one call. Its error is one of those above or comes from gRPC.
func (w *wire) call(ctx context.Context, call tool.Call, sink tool.Sink) (tool.Result, fate, error) {
	stream, how, err := w.send(ctx, &grpc.StreamDesc{ServerStreams: true}, toolpluginv1.PluginService_Call_FullMethodName,
		callRequest(call), maxAnswer(call.Context.MaxOutput))
	if err != nil {
		return tool.Result{}, how, err
	}
	var last *toolpluginv1.Result
	for {
		response := new(toolpluginv1.CallResponse)
		received := &answer{message: response}
		err := stream.RecvMsg(received)
		switch {
		case errors.Is(err, io.EOF) && last == nil:
			return tool.Result{}, ended, fmt.Errorf("%w: it ended the call without a result", errNonsense)
		case errors.Is(err, io.EOF):
			result, err := resultFrom(last)
			return result, ended, err
		case status.Code(err) == codes.ResourceExhausted:
			return tool.Result{}, running, fmt.Errorf("%w: %w", errTooLarge, err)
		case err != nil && ctx.Err() != nil:
			return tool.Result{}, running, err
		case err != nil:
			return tool.Result{}, ended, err
		case received.err != nil:
			return tool.Result{}, running, received.err
		}
		switch event := response.GetEvent().(type) {
		case *toolpluginv1.CallResponse_Progress:
			emitProgress(sink, event.Progress)
		case *toolpluginv1.CallResponse_Chunk:
			emitChunk(sink, event.Chunk)
		case *toolpluginv1.CallResponse_Result:
			if last != nil {
				return tool.Result{}, running, fmt.Errorf("%w: it sent two results", errNonsense)
			}
			last = event.Result
		default:
			// An event that a later version of the contract adds.
		}
	}
}

func callRequest(call tool.Call) *toolpluginv1.CallRequest {
	c := call.Context
	var files *toolpluginv1.FilePolicy
	if c.Files != nil {
		files = &toolpluginv1.FilePolicy{Sensitive: c.Files.Sensitive, Allowed: c.Files.Allowed, Protect: c.Files.Protect, Forbidden: c.Files.Forbidden}
	}
	return &toolpluginv1.CallRequest{
		Tool:            call.Tool,
		CommandTreeJson: call.CommandTree,
		ArgumentsJson:   call.Arguments,
		Context: &toolpluginv1.CallContext{
			CallId:         call.ID,
			Session:        c.Session,
			User:           c.User,
			Client:         c.Client,
			Traceparent:    c.Traceparent,
			Attempt:        uint32(c.Attempt),
			ApprovalId:     c.ApprovalID,
			PreviewDigest:  c.PreviewDigest,
			MaxOutputBytes: uint64(c.MaxOutput),
			Roots:          c.Roots,
			Protected:      c.Protected,
			Files:          files,
			UserDir:        c.UserDir,
			Ticket:         c.Ticket,
		},
	}
}

// emitProgress drops numbers that JSON cannot hold.
func emitProgress(sink tool.Sink, p *toolpluginv1.Progress) {
	done, total := p.GetProgress(), p.GetTotal()
	if sink.Progress == nil || math.IsNaN(done+total) || math.IsInf(done+total, 0) {
		return
	}
	sink.Progress(tool.Progress{Progress: done, Total: total, Message: cutText(p.GetMessage(), maxMessage)})
}

func emitChunk(sink tool.Sink, c *toolpluginv1.Chunk) {
	if sink.Chunk == nil || len(c.GetData()) == 0 {
		return
	}
	stream := tool.Stdout
	if c.GetStream() == toolpluginv1.Chunk_STREAM_STDERR {
		stream = tool.Stderr
	}
	sink.Chunk(tool.Chunk{Stream: stream, Data: c.GetData()})
}

func specsFrom(tools []*toolpluginv1.Tool) ([]tool.Spec, error) {
	if len(tools) > maxTools {
		return nil, fmt.Errorf("%w: it has %d tools, more than %d", errNonsense, len(tools), maxTools)
	}
	var specs []tool.Spec
	for _, t := range tools {
		spec := tool.Spec{
			Name:           t.GetName(),
			Aliases:        t.GetAliases(),
			Title:          t.GetTitle(),
			Category:       t.GetCategory(),
			Description:    t.GetDescription(),
			Tier:           tool.Tier(t.GetTier()),
			Idempotent:     t.GetIdempotent(),
			Cacheable:      t.GetCacheable(),
			OpenWorld:      t.GetOpenWorld(),
			Destructive:    t.GetDestructive(),
			Asks:           t.GetAsks(),
			HasPreview:     t.GetHasPreview(),
			CommandTree:    t.GetCommandTree(),
			MaxOutput:      tool.ByteSize(min(t.GetMaxOutputBytes(), math.MaxInt64)),
			Timeout:        timeoutFrom(t.GetTimeout()),
			MaxConcurrency: int(min(t.GetMaxConcurrency(), math.MaxInt32)),
			InputSchema:    jsonOrNil(t.GetInputSchemaJson()),
			OutputSchema:   jsonOrNil(t.GetOutputSchemaJson()),
		}
		for _, r := range t.GetTierWhen() {
			spec.TierWhen = append(spec.TierWhen, tool.TierRule{
				Property: r.GetProperty(),
				Equals:   jsonOrNil(r.GetEqualsJson()),
				Tier:     tool.Tier(r.GetTier()),
			})
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

func timeoutFrom(d *durationpb.Duration) time.Duration { return max(d.AsDuration(), 0) }

// jsonOrNil keeps "none" as nil.
func jsonOrNil(b []byte) json.RawMessage {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil
	}
	return b
}

// cutText cuts s at n bytes, between two characters.
func cutText(s string, n int) string { return excerpt.Head(s, n) }
