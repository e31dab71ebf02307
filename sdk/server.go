package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk/tool"
)

// register adds the plugin's service to a gRPC server.
func (p *Plugin) register(r grpc.ServiceRegistrar) {
	p.mu.Lock()
	if !p.sealed {
		p.sealed, p.static = true, len(p.tools)
	}
	p.served = true
	p.mu.Unlock()
	toolpluginv1.RegisterPluginServiceServer(r, &server{plugin: p})
}

// server answers the host. Only server and wire.go use the generated types.
type server struct {
	toolpluginv1.UnimplementedPluginServiceServer
	plugin *Plugin
	gate   gate
}

func (s *server) Describe(context.Context, *toolpluginv1.DescribeRequest) (*toolpluginv1.DescribeResponse, error) {
	p := s.plugin
	p.mu.Lock()
	defer p.mu.Unlock()
	response := &toolpluginv1.DescribeResponse{
		Name:         p.name,
		Version:      p.version,
		Sdk:          "toolhost-go " + sdkVersion(),
		Capabilities: p.capabilities(),
		Tools:        specsToProto(p.tools[:p.static]),
	}
	if p.settings != nil {
		response.SettingsSchemaJson = p.settings.schema
	}
	return response, nil
}

// capabilities lists what the plugin can do. p.mu is held.
func (p *Plugin) capabilities() []string {
	all := []string{"connect", "drain", "drain_call", "preview"}
	if len(p.onSessionEnd) > 0 {
		all = append(all, "end_session")
	}
	return all
}

// sdkVersion returns the version of the module that contains this package.
func sdkVersion() string {
	const module = "github.com/toolhost/toolhost"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dep := range info.Deps {
		if dep.Path == module {
			return dep.Version
		}
	}
	return info.Main.Version
}

func (s *server) Configure(ctx context.Context, r *toolpluginv1.ConfigureRequest) (*toolpluginv1.ConfigureResponse, error) {
	diagnostics := s.plugin.configure(ctx, Config{
		StateDir:    r.GetStateDir(),
		ScratchDir:  r.GetScratchDir(),
		Proxy:       r.GetProxy(),
		MemoryLimit: tool.ByteSize(r.GetMemoryLimitBytes()),
		NoNetwork:   r.GetNoNetwork(),
		Name:        r.GetName(),
	}, r.GetSettingsJson())
	response := &toolpluginv1.ConfigureResponse{}
	failed := false
	for _, d := range diagnostics {
		severity := toolpluginv1.Diagnostic_SEVERITY_ERROR
		if d.Warning {
			severity = toolpluginv1.Diagnostic_SEVERITY_WARNING
		}
		if d.Unavailable {
			severity = toolpluginv1.Diagnostic_SEVERITY_UNAVAILABLE
		}
		failed = failed || !d.Warning
		response.Diagnostics = append(response.Diagnostics, &toolpluginv1.Diagnostic{
			Severity: severity, Summary: clean(d.Summary), Detail: clean(d.Detail), Path: d.Path,
		})
	}
	if failed {
		return response, nil
	}
	s.plugin.mu.Lock()
	response.Tools = specsToProto(s.plugin.tools)
	s.plugin.told = s.plugin.revision
	s.plugin.mu.Unlock()
	s.gate.configured()
	return response, nil
}

func (s *server) Call(r *toolpluginv1.CallRequest, stream grpc.ServerStreamingServer[toolpluginv1.CallResponse]) error {
	c := s.newCall(r.GetContext(), r.GetTool(), r.GetArgumentsJson())
	c.data.CommandTree, c.data.Judged, c.data.JudgedUntil = r.GetCommandTreeJson(), judgedFromProto(r.GetJudged()), r.GetJudgedUntil().AsTime()
	if refused := s.gate.enter(c.ID()); refused != nil {
		return c.sendResult(stream, tool.ErrorResult(refused))
	}
	defer s.gate.leave(c.ID())
	c.events = &events{
		sendProgress: func(p tool.Progress) error {
			return stream.Send(&toolpluginv1.CallResponse{Event: &toolpluginv1.CallResponse_Progress{Progress: progressToProto(p)}})
		},
		sendChunk: func(chunk tool.Chunk) error {
			return stream.Send(&toolpluginv1.CallResponse{Event: &toolpluginv1.CallResponse_Chunk{Chunk: chunkToProto(chunk)}})
		},
	}
	result := s.plugin.run(stream.Context(), c)
	c.events.end()
	return c.sendResult(stream, result)
}

func (c *Call) sendResult(stream grpc.ServerStreamingServer[toolpluginv1.CallResponse], result tool.Result) error {
	message, err := resultToProto(result)
	if err == nil && proto.Size(message) > toolpluginv1.MaxMessageBytes-messageMargin {
		err = tool.Errorf(tool.ResourceExhausted, "the tool's result is larger than %s", tool.ByteSize(toolpluginv1.MaxMessageBytes))
	}
	if err != nil {
		c.logger.Error("the tool's result cannot be sent", "tool", c.data.Tool, "error", err)
		message = &toolpluginv1.Result{Error: errorToProto(tool.AsError(err))}
	}
	return stream.Send(&toolpluginv1.CallResponse{Event: &toolpluginv1.CallResponse_Result{Result: message}})
}

func (s *server) EndSession(_ context.Context, r *toolpluginv1.EndSessionRequest) (*toolpluginv1.EndSessionResponse, error) {
	s.plugin.endSession(r.GetSession())
	return &toolpluginv1.EndSessionResponse{}, nil
}

// messageMargin is the size of the fields around a result in its message.
const messageMargin = 64

func (s *server) Preview(ctx context.Context, r *toolpluginv1.PreviewRequest) (*toolpluginv1.PreviewResponse, error) {
	c := s.newCall(r.GetContext(), r.GetTool(), r.GetArgumentsJson())
	if refused := s.gate.enter(c.ID()); refused != nil {
		return &toolpluginv1.PreviewResponse{Error: errorToProto(refused)}, nil
	}
	defer s.gate.leave(c.ID())
	preview, failure := s.plugin.preview(ctx, c)
	if failure != nil {
		return &toolpluginv1.PreviewResponse{Error: errorToProto(failure)}, nil
	}
	response, err := previewToProto(preview)
	if err != nil {
		c.logger.Error("the tool's preview cannot be sent", "tool", c.data.Tool, "error", err)
		response = &toolpluginv1.PreviewResponse{Error: errorToProto(tool.AsError(err))}
	}
	return response, nil
}

func (s *server) newCall(c *toolpluginv1.CallContext, name string, args json.RawMessage) *Call {
	return &Call{
		since:  time.Now(),
		data:   tool.Call{ID: c.GetCallId(), Tool: name, Arguments: args, Context: contextFromProto(c)},
		logger: s.plugin.logger.With("call", c.GetCallId()),
		host:   &s.plugin.host,
		proxy:  &s.plugin.proxy,
	}
}

func (s *server) Connect(stream grpc.BidiStreamingServer[toolpluginv1.HostMessage, toolpluginv1.PluginMessage]) error {
	host := &s.plugin.host
	if !host.attach(func(id uint64, r hostRequest) error { return stream.Send(requestToProto(id, r)) }) {
		return status.Error(codes.AlreadyExists, "the host is connected already")
	}
	var telling sync.WaitGroup
	defer telling.Wait()
	defer host.detach()
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	telling.Go(func() { s.plugin.tellTools(ctx) }) // ends with the connection
	// The header tells the host that requests may follow.
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	for {
		message, err := stream.Recv()
		if err != nil {
			// The host's end of the stream is the end of the connection.
			return nil
		}
		host.deliver(message.GetId(), replyFromProto(message))
	}
}

func (s *server) Drain(ctx context.Context, r *toolpluginv1.DrainRequest) (*toolpluginv1.DrainResponse, error) {
	wait := s.gate.drain
	if id := r.GetCallId(); id != "" {
		wait = func(ctx context.Context) error { return s.gate.drainCall(ctx, id) }
	}
	if err := wait(ctx); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, status.Error(codes.DeadlineExceeded, "calls are still running")
		}
		return nil, status.FromContextError(err).Err()
	}
	return &toolpluginv1.DrainResponse{}, nil
}
