package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Bounds of one result. Whoever reads JSON needs up to fifty times its size.
const (
	maxParts      = 1000 // of content, and of effects
	maxMetadata   = 64 * tool.KiB
	maxStructured = 4 * tool.MiB
)

// minAnswer is what a message of a call may have at least, whatever its budget:
// a text that is somewhat too long is cut by the host, which says how long it
// was.
const minAnswer = 16 * tool.MiB

// maxAnswer bounds one message of a call: twice the output that fits, and room
// for images.
func maxAnswer(output tool.ByteSize) tool.ByteSize {
	if output <= 0 || output >= toolpluginv1.MaxMessageBytes {
		return toolpluginv1.MaxMessageBytes
	}
	return min(max(2*output+11*tool.MiB, minAnswer), toolpluginv1.MaxMessageBytes)
}

// resultFrom checks what later steps rely on: known codes and kinds, and UTF-8.
// Whether the structured result is JSON shows when it is held against its schema.
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
		return nil, nil //nolint:nilnil // no error in the result is what most results have
	}
	code := tool.Code(e.GetCode())
	if !code.Valid() {
		return nil, fmt.Errorf("%w: its error has the unknown code %q", errNonsense, cutText(string(code), maxShort))
	}
	return plainError(e), nil
}

// plainError is an error with texts as long as they may be. Its code may be
// any.
func plainError(e *toolpluginv1.Error) *tool.Error {
	return &tool.Error{
		Code:       tool.Code(e.GetCode()),
		Message:    cutText(e.GetMessage(), maxMessage),
		Hint:       cutText(e.GetHint(), maxMessage),
		Retryable:  e.GetRetryable(),
		RetryAfter: max(e.GetRetryAfter().AsDuration(), 0),
	}
}
