package mcpserver

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestRender(t *testing.T) {
	for _, tt := range []struct {
		name       string
		result     tool.Result
		structured bool
		want       string
	}{
		{
			"text", tool.TextResult("hi"), false,
			`{"_meta":{"toolhost/call_id":"tc_1"},"content":[{"type":"text","text":"hi"}]}`,
		},
		{
			"nothing",
			tool.Result{},
			false,
			`{"_meta":{"toolhost/call_id":"tc_1"},"content":[]}`,
		},
		{
			"an error beside output",
			tool.Result{
				Content: []tool.Content{tool.Text("out")},
				Error:   tool.Errorf(tool.Failed, "Exit code: 2").WithHint("look at the output"),
			},
			false,
			`{"_meta":{"toolhost/call_id":"tc_1","toolhost/error":{"code":"failed","retryable":false}},` +
				`"content":[{"type":"text","text":"Tool execution failed: Exit code: 2\nHint: look at the output"},{"type":"text","text":"out"}],"isError":true}`,
		},
		{
			"structured, once",
			tool.Result{Structured: json.RawMessage(`{"n":1}`)},
			true,
			`{"_meta":{"toolhost/call_id":"tc_1"},"content":[],"structuredContent":{"n":1}}`,
		},
		{
			"structured, to a client that shows texts",
			tool.Result{Structured: json.RawMessage(`{"n":1}`)},
			false,
			`{"_meta":{"toolhost/call_id":"tc_1"},"content":[{"type":"text","text":"{\"n\":1}"}]}`,
		},
		{
			"text and structured, to a client that shows texts",
			tool.Result{Content: []tool.Content{tool.Text("one")}, Structured: json.RawMessage(`{"n":1}`)},
			false,
			`{"_meta":{"toolhost/call_id":"tc_1"},"content":[{"type":"text","text":"one"}]}`,
		},
		{
			"every kind of content",
			tool.Result{
				Content: []tool.Content{
					{Kind: tool.KindImage, MediaType: "image/png", Data: []byte("png")},
					{Kind: tool.KindAudio, MediaType: "audio/wav", Data: []byte("wav")},
					{Kind: tool.KindResourceLink, URI: "file:///a", Name: "a", MediaType: "text/plain"},
					{Kind: tool.KindResource, URI: "file:///b", MediaType: "text/plain", Data: []byte("b")},
					{Kind: tool.KindResource, URI: "file:///c", MediaType: "image/png", Data: []byte("c")},
				},
				Metadata: map[string]any{"lines": 3},
			},
			false,
			`{"_meta":{"toolhost/call_id":"tc_1","toolhost/metadata":{"lines":3}},"content":[` +
				`{"type":"image","mimeType":"image/png","data":"cG5n"},` +
				`{"type":"audio","mimeType":"audio/wav","data":"d2F2"},` +
				`{"type":"resource_link","mimeType":"text/plain","uri":"file:///a","name":"a"},` +
				`{"type":"resource","resource":{"uri":"file:///b","mimeType":"text/plain","text":"b"}},` +
				`{"type":"resource","resource":{"uri":"file:///c","mimeType":"image/png","blob":"Yw=="}}]}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := json.Marshal((&deferred{}).render(operation.Outcome{ID: "tc_1", Result: tt.result}, tt.structured))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("render(%+v) differs (-want +got):\n%s", tt.result, diff)
			}
		})
	}
}
