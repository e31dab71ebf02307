package tool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Result is the result of a call. The zero Result is a success without output.
type Result struct {
	// Content is the output for the caller.
	Content []Content
	// Structured is the result as JSON for programs; nil means none.
	Structured json.RawMessage
	// Metadata holds facts about the result; nil means none.
	Metadata map[string]any
	// Effects lists the changes that the call made.
	Effects []Effect
	// Error is why the call failed; nil means success. A failed call
	// may have content, such as the output of a command.
	Error *Error
}

// Kind is the kind of a part of the content.
type Kind int

// The kinds of content.
const (
	KindText Kind = iota + 1
	KindImage
	KindAudio
	// KindResourceLink is a link to a resource that can be fetched.
	KindResourceLink
	// KindResource is an embedded resource.
	KindResource
)

var kindNames = []string{"text", "image", "audio", "resource_link", "resource"}

// String returns the kind's name in JSON and in MCP.
func (k Kind) String() string {
	if k < KindText || k > KindResource {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kindNames[k-KindText]
}

// MarshalText implements [encoding.TextMarshaler]. It fails for an invalid Kind.
func (k Kind) MarshalText() ([]byte, error) {
	if k < KindText || k > KindResource {
		return nil, fmt.Errorf("kind %d of content is not valid", int(k))
	}
	return []byte(k.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (k *Kind) UnmarshalText(text []byte) error {
	i := slices.Index(kindNames, string(text))
	if i < 0 {
		return fmt.Errorf("unknown kind of content %q, expected one of %s", text, strings.Join(kindNames, ", "))
	}
	*k = KindText + Kind(i)
	return nil
}

// Content is one part of a result.
type Content struct {
	Kind Kind `json:"kind"`
	// MediaType is the media type of an image, audio or a resource.
	MediaType string `json:"media_type,omitempty"`
	// URI and Name identify a resource or the target of a link.
	URI  string `json:"uri,omitempty"`
	Name string `json:"name,omitempty"`
	// Data is UTF-8 if [Content.IsText], and raw bytes if not.
	Data []byte `json:"data,omitempty"`
}

// IsText reports whether Data is text: c has [KindText], or is a resource with a text
// media type, including JSON and XML.
func (c Content) IsText() bool {
	return c.Kind == KindText || c.Kind == KindResource && isText(c.MediaType)
}

// isText reports whether a media type is text; "+json" and "+xml" are the
// structured syntax suffixes of RFC 6839.
func isText(mediaType string) bool {
	name, _, _ := strings.Cut(mediaType, ";")
	name = strings.ToLower(strings.TrimSpace(name))
	return strings.HasPrefix(name, "text/") || name == "application/json" || name == "application/xml" ||
		strings.HasSuffix(name, "+json") || strings.HasSuffix(name, "+xml")
}

// Effect is one change that a call has made.
type Effect struct {
	// Kind is, for example, "file.changed".
	Kind string `json:"kind"`
	// Target is, for example, the path.
	Target string `json:"target"`
	// Operation is, for example, "create", "update" or "delete".
	Operation string `json:"operation"`
}

// TextResult returns a successful result with one text part.
func TextResult(text string) Result {
	return Result{Content: []Content{Text(text)}}
}

// ErrorResult returns a failed result without output.
func ErrorResult(err *Error) Result { return Result{Error: err} }

// Text returns a text part.
func Text(text string) Content { return Content{Kind: KindText, Data: []byte(text)} }

// Text returns the text parts of the result, joined by newlines.
func (r Result) Text() string {
	var parts []string
	for _, c := range r.Content {
		if c.Kind == KindText {
			parts = append(parts, string(c.Data))
		}
	}
	return strings.Join(parts, "\n")
}
