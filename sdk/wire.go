package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk/tool"
)

func specsToProto(entries []*entry) []*toolpluginv1.Tool {
	list := make([]*toolpluginv1.Tool, len(entries))
	for i, e := range entries {
		list[i] = specToProto(e.spec)
	}
	return list
}

// sizeOf returns the size of a message with tools, and the size that it may have.
func sizeOf(entries []*entry) (size, most tool.ByteSize) {
	return tool.ByteSize(proto.Size(&toolpluginv1.ToolsChanged{Tools: specsToProto(entries)})), toolpluginv1.MaxMessageBytes - messageMargin
}

func specToProto(s tool.Spec) *toolpluginv1.Tool {
	t := &toolpluginv1.Tool{
		Name: s.Name, Aliases: s.Aliases, Title: clean(s.Title), Category: clean(s.Category),
		Description: clean(s.Description), Tier: tierToProto(s.Tier),
		Idempotent: s.Idempotent, Cacheable: s.Cacheable, OpenWorld: s.OpenWorld, Destructive: s.Destructive,
		Asks: s.Asks, HasPreview: s.HasPreview, CommandTree: s.CommandTree,
		MaxOutputBytes: uint64(s.MaxOutput), MaxConcurrency: uint32(s.MaxConcurrency),
		InputSchemaJson: s.InputSchema, OutputSchemaJson: s.OutputSchema,
		Core: s.Core, SearchHint: clean(s.SearchHint), Unavailable: clean(s.Unavailable), Foreign: s.Foreign,
	}
	if s.Timeout > 0 {
		t.Timeout = durationpb.New(s.Timeout)
	}
	for _, r := range s.TierWhen {
		t.TierWhen = append(t.TierWhen, &toolpluginv1.TierRule{
			Property: r.Property, Tier: tierToProto(r.Tier), EqualsJson: r.Equals,
		})
	}
	return t
}

func tierToProto(t tool.Tier) toolpluginv1.Tier {
	switch t {
	case tool.ReadOnly:
		return toolpluginv1.Tier_TIER_READ_ONLY
	case tool.SideEffecting:
		return toolpluginv1.Tier_TIER_SIDE_EFFECTING
	case tool.Privileged:
		return toolpluginv1.Tier_TIER_PRIVILEGED
	}
	return toolpluginv1.Tier_TIER_UNSPECIFIED
}

func contextFromProto(c *toolpluginv1.CallContext) tool.Context {
	return tool.Context{
		Session: c.GetSession(), User: c.GetUser(), Client: c.GetClient(), Traceparent: c.GetTraceparent(),
		Attempt: int(c.GetAttempt()), ApprovalID: c.GetApprovalId(), PreviewDigest: c.GetPreviewDigest(),
		MaxOutput: tool.ByteSize(c.GetMaxOutputBytes()), Roots: c.GetRoots(), Protected: c.GetProtected(), UserDir: c.GetUserDir(),
		Ticket: c.GetTicket(), Files: filesFromProto(c.GetFiles()),
	}
}

func filesFromProto(f *toolpluginv1.FilePolicy) *tool.FilePolicy {
	if f == nil {
		return nil
	}
	return &tool.FilePolicy{
		Sensitive: append([]string{}, f.GetSensitive()...), Allowed: f.GetAllowed(), Protect: append([]string{}, f.GetProtect()...), Forbidden: f.GetForbidden(),
	}
}

func progressToProto(p tool.Progress) *toolpluginv1.Progress {
	return &toolpluginv1.Progress{Progress: p.Progress, Total: p.Total, Message: clean(p.Message)}
}

func chunkToProto(c tool.Chunk) *toolpluginv1.Chunk {
	stream := toolpluginv1.Chunk_STREAM_STDOUT
	if c.Stream == tool.Stderr {
		stream = toolpluginv1.Chunk_STREAM_STDERR
	}
	return &toolpluginv1.Chunk{Stream: stream, Data: c.Data}
}

// resultToProto fails if the result cannot be sent.
func resultToProto(r tool.Result) (*toolpluginv1.Result, error) {
	out := &toolpluginv1.Result{Error: errorToProto(r.Error), StructuredJson: r.Structured}
	for _, e := range r.Effects {
		out.Effects = append(out.Effects, &toolpluginv1.Effect{
			Kind: clean(e.Kind), Target: clean(e.Target), Operation: clean(e.Operation),
		})
	}
	var err error
	if out.Content, err = contentToProto(r.Content); err != nil {
		return nil, err
	}
	if len(r.Metadata) > 0 {
		if out.MetadataJson, err = json.Marshal(r.Metadata); err != nil {
			return nil, mistakeInResult("metadata that JSON cannot hold").WithCause(err)
		}
	}
	return out, nil
}

func contentToProto(parts []tool.Content) ([]*toolpluginv1.Content, error) {
	var out []*toolpluginv1.Content
	for _, part := range parts {
		kind, err := kindToProto(part.Kind)
		if err != nil {
			return nil, err
		}
		data := part.Data
		if part.IsText() && !utf8.Valid(data) {
			data = bytes.ToValidUTF8(data, []byte("\uFFFD"))
		}
		out = append(out, &toolpluginv1.Content{
			Kind: kind, MediaType: clean(part.MediaType), Uri: clean(part.URI), Name: clean(part.Name), Data: data,
		})
	}
	return out, nil
}

func kindToProto(k tool.Kind) (toolpluginv1.Content_Kind, error) {
	switch k {
	case tool.KindText:
		return toolpluginv1.Content_KIND_TEXT, nil
	case tool.KindImage:
		return toolpluginv1.Content_KIND_IMAGE, nil
	case tool.KindAudio:
		return toolpluginv1.Content_KIND_AUDIO, nil
	case tool.KindResourceLink:
		return toolpluginv1.Content_KIND_RESOURCE_LINK, nil
	case tool.KindResource:
		return toolpluginv1.Content_KIND_RESOURCE, nil
	}
	return 0, mistakeInResult(fmt.Sprintf("content of no known kind (%d)", int(k)))
}

func errorToProto(e *tool.Error) *toolpluginv1.Error {
	if e == nil {
		return nil
	}
	out := &toolpluginv1.Error{
		Code: string(e.Code), Message: clean(e.Message), Hint: clean(e.Hint), Retryable: e.Retryable,
	}
	if e.RetryAfter > 0 {
		out.RetryAfter = durationpb.New(e.RetryAfter)
	}
	return out
}

func errorFromProto(e *toolpluginv1.Error) *tool.Error {
	if e == nil {
		return nil
	}
	var after time.Duration
	if e.GetRetryAfter() != nil {
		after = e.GetRetryAfter().AsDuration()
	}
	return &tool.Error{
		Code: tool.Code(e.GetCode()), Message: e.GetMessage(), Hint: e.GetHint(),
		Retryable: e.GetRetryable(), RetryAfter: after,
	}
}

// previewToProto fails if the preview cannot be sent.
func previewToProto(p tool.Preview) (*toolpluginv1.PreviewResponse, error) {
	content, err := contentToProto(p.Content)
	if err != nil {
		return nil, err
	}
	return &toolpluginv1.PreviewResponse{Summary: clean(p.Summary), Digest: p.Digest, Content: content}, nil
}

func requestToProto(id uint64, r hostRequest) *toolpluginv1.PluginMessage {
	m := &toolpluginv1.PluginMessage{Id: id, Ticket: r.ticket}
	if e := r.execution; e != nil {
		m.Request = &toolpluginv1.PluginMessage_MayRun{MayRun: &toolpluginv1.MayRunRequest{
			Argv: e.Argv, Environment: e.Environment, Directory: e.Directory, File: e.File, Write: e.Write,
		}}
		return m
	}
	if r.changed {
		m.Request = &toolpluginv1.PluginMessage_ToolsChanged{ToolsChanged: &toolpluginv1.ToolsChanged{Tools: specsToProto(r.tools)}}
		return m
	}
	if r.question != "" {
		m.Request = &toolpluginv1.PluginMessage_AskUser{
			AskUser: &toolpluginv1.AskUserRequest{Question: clean(r.question), SchemaJson: r.form},
		}
		return m
	}
	m.Request = &toolpluginv1.PluginMessage_Secret{Secret: &toolpluginv1.SecretRequest{Name: clean(r.secret)}}
	return m
}

func judgedFromProto(all []*toolpluginv1.JudgedPart) []tool.Judged {
	judged := make([]tool.Judged, 0, len(all))
	for _, j := range all {
		e := j.GetPart()
		judged = append(judged, tool.Judged{Unlinked: j.GetUnlinked(), Execution: tool.Execution{
			Argv: e.GetArgv(), Environment: e.GetEnvironment(), Directory: e.GetDirectory(), File: e.GetFile(), Write: e.GetWrite(),
		}})
	}
	return judged
}

func replyFromProto(m *toolpluginv1.HostMessage) hostReply {
	return hostReply{
		err:      errorFromProto(m.GetError()),
		secret:   m.GetSecret().GetValue(),
		answered: m.GetAskUser().GetAnswered(),
		answer:   m.GetAskUser().GetAnswerJson(),
		mayRun:   m.GetMayRun() != nil,
	}
}

// clean replaces bytes that are not UTF-8, which protobuf does not accept.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
