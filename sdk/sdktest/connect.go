package sdktest

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk/tool"
)

// connectTimeout is the time to confirm the connection. A plugin need not confirm it, but
// its test then takes longer.
const connectTimeout = time.Second

// connect answers the requests of the plugin until it stops. It returns when the plugin
// can send requests.
func (p *Plugin) connect() {
	if !slices.Contains(p.describe.GetCapabilities(), "connect") {
		return
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // as long as the plugin, which outlives any call
	connected, done := make(chan struct{}), make(chan struct{})
	go func() { // ends with the plugin; stop waits for it
		defer close(done)
		p.answer(ctx, connected)
	}()
	stop := p.stop
	p.stop = func() {
		cancel()
		<-done
		stop()
	}
	timer := time.NewTimer(connectTimeout)
	defer timer.Stop()
	select {
	case <-connected:
	case <-done:
	case <-timer.C:
	}
}

func (p *Plugin) answer(ctx context.Context, connected chan<- struct{}) {
	stream, err := p.client.Connect(ctx)
	if err != nil {
		return
	}
	if _, err := stream.Header(); err != nil {
		return
	}
	close(connected)
	for {
		request, err := stream.Recv()
		if err != nil || stream.Send(p.reply(request)) != nil {
			return
		}
	}
}

func (p *Plugin) reply(m *toolpluginv1.PluginMessage) *toolpluginv1.HostMessage {
	reply := &toolpluginv1.HostMessage{Id: m.GetId()}
	switch r := m.GetRequest().(type) {
	case *toolpluginv1.PluginMessage_Secret:
		value, ok := p.options.Secrets[r.Secret.GetName()]
		if !ok {
			reply.Error = errorToProto(tool.Errorf(tool.PermissionDenied, "secret %q is not granted to the plugin", r.Secret.GetName()))
			break
		}
		reply.Reply = &toolpluginv1.HostMessage_Secret{Secret: &toolpluginv1.SecretReply{Value: []byte(value)}}
	case *toolpluginv1.PluginMessage_AskUser:
		reply.Reply = &toolpluginv1.HostMessage_AskUser{AskUser: p.askUser(r.AskUser)}
	case *toolpluginv1.PluginMessage_MayRun:
		if refused := p.mayRun(r.MayRun); refused != nil {
			reply.Error = errorToProto(refused)
		} else {
			reply.Reply = &toolpluginv1.HostMessage_MayRun{MayRun: &toolpluginv1.MayRunReply{}}
		}
	case *toolpluginv1.PluginMessage_ToolsChanged:
		p.setTools(r.ToolsChanged.GetTools())
	default:
		reply.Error = errorToProto(tool.Errorf(tool.InvalidArgument, "sdktest does not know this request"))
	}
	return reply
}

func judgedToProto(all []tool.Judged) []*toolpluginv1.JudgedPart {
	judged := make([]*toolpluginv1.JudgedPart, 0, len(all))
	for _, j := range all {
		judged = append(judged, &toolpluginv1.JudgedPart{Unlinked: j.Unlinked, Part: &toolpluginv1.MayRunRequest{
			Argv: j.Argv, Environment: j.Environment, Directory: j.Directory, File: j.File, Write: j.Write,
		}})
	}
	return judged
}

func (p *Plugin) mayRun(r *toolpluginv1.MayRunRequest) *tool.Error {
	if p.options.MayRun == nil {
		return tool.Errorf(tool.PermissionDenied, "nothing may run")
	}
	return p.options.MayRun(tool.Execution{
		Argv: r.GetArgv(), Environment: r.GetEnvironment(), Directory: r.GetDirectory(), File: r.GetFile(), Write: r.GetWrite(),
	})
}

func (p *Plugin) askUser(r *toolpluginv1.AskUserRequest) *toolpluginv1.AskUserReply {
	if p.options.Answer == nil {
		return &toolpluginv1.AskUserReply{}
	}
	answer, answered := p.options.Answer(r.GetQuestion(), r.GetSchemaJson())
	raw, err := json.Marshal(answer)
	if err != nil || !answered {
		return &toolpluginv1.AskUserReply{}
	}
	return &toolpluginv1.AskUserReply{Answered: true, AnswerJson: raw}
}
