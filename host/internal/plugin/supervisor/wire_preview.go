package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxDigest bounds what names the state that a preview was computed from, in
// bytes.
const maxDigest = 1 << 10

// preview asks what a call would do. Its error is a [*tool.Error] of the
// plugin, or as that of [wire.call].
func (w *wire) preview(ctx context.Context, call tool.Call) (tool.Preview, fate, error) {
	request := callRequest(call)
	stream, how, err := w.send(ctx, new(grpc.StreamDesc), toolpluginv1.PluginService_Preview_FullMethodName, &toolpluginv1.PreviewRequest{
		Context: request.GetContext(), Tool: request.GetTool(), ArgumentsJson: request.GetArgumentsJson(),
	}, maxAnswer(call.Context.MaxOutput))
	if err != nil {
		return tool.Preview{}, how, err
	}
	response := new(toolpluginv1.PreviewResponse)
	received := &answer{message: response}
	err = stream.RecvMsg(received)
	switch {
	case err != nil && ctx.Err() != nil:
		return tool.Preview{}, running, err
	case errors.Is(err, io.EOF):
		return tool.Preview{}, ended, fmt.Errorf("%w: it ended the preview without an answer", errNonsense)
	case status.Code(err) == codes.ResourceExhausted:
		return tool.Preview{}, ended, fmt.Errorf("%w: %w", errTooLarge, err)
	case err != nil:
		return tool.Preview{}, ended, err
	case received.err != nil:
		return tool.Preview{}, ended, received.err
	}
	preview, err := previewFrom(response)
	return preview, ended, err
}

// previewFrom checks what people are shown: how much it is, the kinds, and
// that texts are texts. Nothing is cut: what is approved is shown whole.
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

// failureFrom is an error of a plugin with a code that a plugin may use.
func failureFrom(e *toolpluginv1.Error) *tool.Error {
	failure := plainError(e)
	if !failure.Code.Valid() || failure.Code.HostOnly() {
		failure.Code = tool.Failed
	}
	return failure
}
