package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/toolhost/toolhost/internal/excerpt"
	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxTools bounds the tools of one plugin.
	maxTools = 1000
	// maxShort and maxMessage bound texts that are not the output of a tool, in
	// bytes.
	maxShort   = 256
	maxMessage = 16 << 10
	// maxDigest bounds the digest of a preview, in bytes.
	maxDigest = 1 << 10
)

func callRequest(call tool.Call) *toolpluginv1.CallRequest {
	c := call.Context
	var files *toolpluginv1.FilePolicy
	if c.Files != nil {
		files = &toolpluginv1.FilePolicy{Sensitive: c.Files.Sensitive, Allowed: c.Files.Allowed, Protect: c.Files.Protect, Forbidden: c.Files.Forbidden}
	}
	return &toolpluginv1.CallRequest{
		Tool:            call.Tool,
		CommandTreeJson: call.CommandTree,
		Judged:          judgedParts(call.Judged),
		JudgedUntil:     timestamppb.New(call.JudgedUntil),
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

func judgedParts(all []tool.Judged) []*toolpluginv1.JudgedPart {
	judged := make([]*toolpluginv1.JudgedPart, 0, len(all))
	for _, j := range all {
		judged = append(judged, &toolpluginv1.JudgedPart{Unlinked: j.Unlinked, Part: &toolpluginv1.MayRunRequest{
			Argv: j.Argv, Environment: j.Environment, Directory: j.Directory, File: j.File, Write: j.Write,
		}})
	}
	return judged
}

// emitProgress passes progress on, unless JSON cannot hold its numbers.
func emitProgress(sink tool.Sink, p *toolpluginv1.Progress) {
	done, total := p.GetProgress(), p.GetTotal()
	if sink.Progress == nil || math.IsNaN(done+total) || math.IsInf(done+total, 0) {
		return
	}
	sink.Progress(tool.Progress{Progress: done, Total: total, Message: excerpt.Head(p.GetMessage(), maxMessage)})
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
			Core:           t.GetCore(),
			SearchHint:     t.GetSearchHint(),
			Unavailable:    t.GetUnavailable(),
			Foreign:        t.GetForeign(),
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

// jsonOrNil returns nil for blank text.
func jsonOrNil(b []byte) json.RawMessage {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil
	}
	return b
}

// Bounds of one result. Decoding JSON takes up to fifty times its size.
const (
	maxParts      = 1000 // of content, and of effects
	maxMetadata   = 64 * tool.KiB
	maxStructured = 4 * tool.MiB
)

// minAnswer is the least bound of a message of a call. The host itself cuts a text
// that is a little too long, and reports its length.
const minAnswer = 16 * tool.MiB

// maxAnswer returns the bound of one message of a call: twice the output limit, and
// room for images.
func maxAnswer(output tool.ByteSize) tool.ByteSize {
	if output <= 0 || output >= toolpluginv1.MaxMessageBytes {
		return toolpluginv1.MaxMessageBytes
	}
	return min(max(2*output+11*tool.MiB, minAnswer), toolpluginv1.MaxMessageBytes)
}

// resultFrom converts a result. It checks the codes, the kinds and the UTF-8 that
// later steps rely on. The output schema checks that the structured result is JSON.
func resultFrom(r *toolpluginv1.Result) (tool.Result, error) {
	var result tool.Result
	switch {
	case len(r.GetContent()) > maxParts:
		return result, fmt.Errorf("%w: it sent %d parts of content, more than %d", errNonsense, len(r.GetContent()), maxParts)
	case len(r.GetEffects()) > maxParts:
		return result, fmt.Errorf("%w: it sent %d effects, more than %d", errNonsense, len(r.GetEffects()), maxParts)
	case len(r.GetMetadataJson()) > int(maxMetadata):
		return result, fmt.Errorf("%w: the metadata is larger than %v", errNonsense, maxMetadata)
	case len(r.GetStructuredJson()) > int(maxStructured):
		return result, fmt.Errorf("%w: the structured result is larger than %v", errNonsense, maxStructured)
	}
	for i, c := range r.GetContent() {
		content, err := contentFrom(c)
		if err != nil {
			return tool.Result{}, fmt.Errorf("%w: content %d %w", errNonsense, i, err)
		}
		result.Content = append(result.Content, content)
	}
	if s := r.GetStructuredJson(); len(s) > 0 {
		if !utf8.Valid(s) {
			return tool.Result{}, fmt.Errorf("%w: the structured result is not valid UTF-8", errNonsense)
		}
		result.Structured = s
	}
	if m := r.GetMetadataJson(); len(m) > 0 {
		if err := json.Unmarshal(m, &result.Metadata); err != nil {
			return tool.Result{}, fmt.Errorf("%w: the metadata is not a JSON object", errNonsense)
		}
	}
	for _, e := range r.GetEffects() {
		result.Effects = append(result.Effects, tool.Effect{Kind: e.GetKind(), Target: e.GetTarget(), Operation: e.GetOperation()})
	}
	var err error
	result.Error, err = errorFrom(r.GetError())
	return result, err
}

func contentFrom(c *toolpluginv1.Content) (tool.Content, error) {
	content := tool.Content{MediaType: c.GetMediaType(), URI: c.GetUri(), Name: c.GetName(), Data: c.GetData()}
	switch c.GetKind() {
	case toolpluginv1.Content_KIND_TEXT:
		content.Kind = tool.KindText
	case toolpluginv1.Content_KIND_IMAGE:
		content.Kind = tool.KindImage
	case toolpluginv1.Content_KIND_AUDIO:
		content.Kind = tool.KindAudio
	case toolpluginv1.Content_KIND_RESOURCE_LINK:
		content.Kind = tool.KindResourceLink
	case toolpluginv1.Content_KIND_RESOURCE:
		content.Kind = tool.KindResource
	case toolpluginv1.Content_KIND_UNSPECIFIED:
		fallthrough
	default:
		return content, fmt.Errorf("has the unknown kind %d", c.GetKind())
	}
	isText := content.Kind == tool.KindText || content.Kind == tool.KindResource && strings.HasPrefix(content.MediaType, "text/")
	if isText && !utf8.Valid(content.Data) {
		return content, errors.New("is text that is not valid UTF-8")
	}
	return content, nil
}

func errorFrom(e *toolpluginv1.Error) (*tool.Error, error) {
	if e == nil {
		return nil, nil
	}
	code := tool.Code(e.GetCode())
	if !code.Valid() {
		return nil, fmt.Errorf("%w: its error has the unknown code %q", errNonsense, excerpt.Head(string(code), maxShort))
	}
	return plainError(e), nil
}

// plainError converts an error with any code, and cuts its texts.
func plainError(e *toolpluginv1.Error) *tool.Error {
	return &tool.Error{
		Code:       tool.Code(e.GetCode()),
		Message:    excerpt.Head(e.GetMessage(), maxMessage),
		Hint:       excerpt.Head(e.GetHint(), maxMessage),
		Retryable:  e.GetRetryable(),
		RetryAfter: max(e.GetRetryAfter().AsDuration(), 0),
	}
}

// previewFrom converts a preview, which people are shown. It checks the sizes, the
// kinds and the UTF-8. It cuts nothing: a person must see all that they approve.
func previewFrom(r *toolpluginv1.PreviewResponse) (tool.Preview, error) {
	if e := r.GetError(); e != nil {
		return tool.Preview{}, failureFrom(e)
	}
	switch {
	case len(r.GetSummary()) > maxMessage:
		return tool.Preview{}, fmt.Errorf("%w: the summary of its preview is larger than %v", errNonsense, tool.ByteSize(maxMessage))
	case len(r.GetDigest()) > maxDigest:
		return tool.Preview{}, fmt.Errorf("%w: the digest of its preview is larger than %v", errNonsense, tool.ByteSize(maxDigest))
	case len(r.GetContent()) > maxParts:
		return tool.Preview{}, fmt.Errorf("%w: it sent %d parts of content, more than %d", errNonsense, len(r.GetContent()), maxParts)
	}
	preview := tool.Preview{Summary: r.GetSummary(), Digest: r.GetDigest()}
	for i, c := range r.GetContent() {
		if k := c.GetKind(); k == toolpluginv1.Content_KIND_TEXT || k == toolpluginv1.Content_KIND_RESOURCE && strings.HasPrefix(c.GetMediaType(), "text/") {
			c.Data = bytes.ToValidUTF8(c.GetData(), []byte("\uFFFD"))
		}
		content, err := contentFrom(c)
		if err != nil {
			return tool.Preview{}, fmt.Errorf("%w: content %d of its preview %w", errNonsense, i, err)
		}
		preview.Content = append(preview.Content, content)
	}
	return preview, nil
}

// failureFrom converts an error of a plugin. A code that is unknown or reserved for
// the host becomes [tool.Failed].
func failureFrom(e *toolpluginv1.Error) *tool.Error {
	failure := plainError(e)
	if !failure.Code.Valid() || failure.Code.HostOnly() {
		failure.Code = tool.Failed
	}
	return failure
}
