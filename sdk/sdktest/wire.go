package sdktest

import (
	"encoding/json"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk/protect"
	"github.com/toolhost/toolhost/sdk/tool"
)

// These are the conversions of the host; those of the plugin are in package sdk. They do
// not correct wrong values, so that the contract suite sees them.

func specFromProto(t *toolpluginv1.Tool) tool.Spec {
	s := tool.Spec{
		Name: t.GetName(), Aliases: t.GetAliases(), Title: t.GetTitle(), Category: t.GetCategory(),
		Description: t.GetDescription(), Tier: tierFromProto(t.GetTier()),
		Idempotent: t.GetIdempotent(), Cacheable: t.GetCacheable(), OpenWorld: t.GetOpenWorld(),
		Destructive: t.GetDestructive(), Asks: t.GetAsks(), HasPreview: t.GetHasPreview(),
		MaxOutput: tool.ByteSize(t.GetMaxOutputBytes()), Timeout: durationFromProto(t.GetTimeout()),
		MaxConcurrency: int(t.GetMaxConcurrency()),
		InputSchema:    t.GetInputSchemaJson(), OutputSchema: t.GetOutputSchemaJson(),
		Core: t.GetCore(), SearchHint: t.GetSearchHint(), Unavailable: t.GetUnavailable(), Foreign: t.GetForeign(),
	}
	for _, r := range t.GetTierWhen() {
		s.TierWhen = append(s.TierWhen, tool.TierRule{
			Property: r.GetProperty(), Equals: r.GetEqualsJson(), Tier: tierFromProto(r.GetTier()),
		})
	}
	return s
}

func tierFromProto(t toolpluginv1.Tier) tool.Tier {
	switch t {
	case toolpluginv1.Tier_TIER_READ_ONLY:
		return tool.ReadOnly
	case toolpluginv1.Tier_TIER_SIDE_EFFECTING:
		return tool.SideEffecting
	case toolpluginv1.Tier_TIER_PRIVILEGED:
		return tool.Privileged
	case toolpluginv1.Tier_TIER_UNSPECIFIED:
	}
	return 0
}

func durationFromProto(d *durationpb.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.AsDuration()
}

func contextToProto(c tool.Call) *toolpluginv1.CallContext {
	context := &toolpluginv1.CallContext{
		CallId: c.ID, Session: c.Context.Session, User: c.Context.User, Client: c.Context.Client,
		Traceparent: c.Context.Traceparent, Attempt: uint32(c.Context.Attempt), ApprovalId: c.Context.ApprovalID,
		PreviewDigest: c.Context.PreviewDigest, MaxOutputBytes: uint64(c.Context.MaxOutput),
		Roots: c.Context.Roots, Protected: c.Context.Protected, UserDir: c.Context.UserDir, Ticket: c.Context.Ticket,
	}
	if f := c.Context.Files; f != nil {
		context.Files = &toolpluginv1.FilePolicy{Sensitive: f.Sensitive, Allowed: f.Allowed, Protect: f.Protect, Forbidden: f.Forbidden}
		if f.Protect == nil {
			context.Files.Protect = protect.Presets()
		}
	}
	return context
}

func progressFromProto(p *toolpluginv1.Progress) tool.Progress {
	return tool.Progress{Progress: p.GetProgress(), Total: p.GetTotal(), Message: p.GetMessage()}
}

func chunkFromProto(c *toolpluginv1.Chunk) tool.Chunk {
	stream := tool.Stdout
	if c.GetStream() == toolpluginv1.Chunk_STREAM_STDERR {
		stream = tool.Stderr
	}
	return tool.Chunk{Stream: stream, Data: c.GetData()}
}

func resultFromProto(r *toolpluginv1.Result) tool.Result {
	out := tool.Result{Content: contentFromProto(r.GetContent()), Structured: r.GetStructuredJson(), Error: errorFromProto(r.GetError())}
	for _, e := range r.GetEffects() {
		out.Effects = append(out.Effects, tool.Effect{Kind: e.GetKind(), Target: e.GetTarget(), Operation: e.GetOperation()})
	}
	if raw := r.GetMetadataJson(); len(raw) > 0 {
		if err := json.Unmarshal(raw, &out.Metadata); err != nil {
			return tool.ErrorResult(tool.Errorf(tool.OutputInvalid, "the result's metadata is not a JSON object: %v", err))
		}
	}
	return out
}

func contentFromProto(parts []*toolpluginv1.Content) []tool.Content {
	var out []tool.Content
	for _, c := range parts {
		out = append(out, tool.Content{
			Kind: kindFromProto(c.GetKind()), MediaType: c.GetMediaType(), URI: c.GetUri(), Name: c.GetName(), Data: c.GetData(),
		})
	}
	return out
}

func kindFromProto(k toolpluginv1.Content_Kind) tool.Kind {
	switch k {
	case toolpluginv1.Content_KIND_TEXT:
		return tool.KindText
	case toolpluginv1.Content_KIND_IMAGE:
		return tool.KindImage
	case toolpluginv1.Content_KIND_AUDIO:
		return tool.KindAudio
	case toolpluginv1.Content_KIND_RESOURCE_LINK:
		return tool.KindResourceLink
	case toolpluginv1.Content_KIND_RESOURCE:
		return tool.KindResource
	case toolpluginv1.Content_KIND_UNSPECIFIED:
	}
	return 0
}

func errorFromProto(e *toolpluginv1.Error) *tool.Error {
	if e == nil {
		return nil
	}
	return &tool.Error{
		Code: tool.Code(e.GetCode()), Message: e.GetMessage(), Hint: e.GetHint(),
		Retryable: e.GetRetryable(), RetryAfter: durationFromProto(e.GetRetryAfter()),
	}
}

func errorToProto(e *tool.Error) *toolpluginv1.Error {
	return &toolpluginv1.Error{Code: string(e.Code), Message: e.Message, Hint: e.Hint, Retryable: e.Retryable}
}

func previewFromProto(r *toolpluginv1.PreviewResponse) tool.Preview {
	return tool.Preview{Summary: r.GetSummary(), Content: contentFromProto(r.GetContent()), Digest: r.GetDigest()}
}
