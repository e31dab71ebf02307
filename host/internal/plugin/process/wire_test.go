package process

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk/tool"
)

// wantAllSet fails for each field of a message that a test forgot to set.
func wantAllSet(t *testing.T, m proto.Message) {
	t.Helper()
	r := m.ProtoReflect()
	fields := r.Descriptor().Fields()
	for i := range fields.Len() {
		if field := fields.Get(i); !r.Has(field) {
			t.Errorf("the test does not set %s", field.FullName())
		} else if field.Kind() == protoreflect.MessageKind && !field.IsList() {
			wantAllSet(t, r.Get(field).Message().Interface())
		}
	}
}

func TestSpecsFrom(t *testing.T) {
	message := &toolpluginv1.Tool{
		Name: "n", Aliases: []string{"a"}, Title: "t", Category: "c", Description: "d", Core: true, SearchHint: "h", Unavailable: "u", Foreign: true, Tier: toolpluginv1.Tier_TIER_PRIVILEGED,
		TierWhen:   []*toolpluginv1.TierRule{{Property: "p", Tier: toolpluginv1.Tier_TIER_SIDE_EFFECTING, EqualsJson: []byte(`1`)}},
		Idempotent: true, Cacheable: true, OpenWorld: true, Destructive: true, Asks: true, HasPreview: true, CommandTree: true,
		MaxOutputBytes: 5, Timeout: durationpb.New(time.Minute + 1), MaxConcurrency: 6,
		OutputSchemaJson: []byte(`{"type":"string"}`), InputSchemaJson: []byte(`{"type":"object"}`),
	}
	wantAllSet(t, message)
	want := []tool.Spec{{
		Name: "n", Aliases: []string{"a"}, Title: "t", Category: "c", Description: "d", Core: true, SearchHint: "h", Unavailable: "u", Foreign: true, Tier: tool.Privileged,
		TierWhen:   []tool.TierRule{{Property: "p", Tier: tool.SideEffecting, Equals: json.RawMessage(`1`)}},
		Idempotent: true, Cacheable: true, OpenWorld: true, Destructive: true, Asks: true, HasPreview: true, CommandTree: true,
		MaxOutput: 5, Timeout: time.Minute + 1, MaxConcurrency: 6,
		OutputSchema: json.RawMessage(`{"type":"string"}`), InputSchema: json.RawMessage(`{"type":"object"}`),
	}}
	got, err := specsFrom([]*toolpluginv1.Tool{message})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("specsFrom() (-want +got):\n%s", diff)
	}
	// Numbers that no field of ours can hold.
	got, err = specsFrom([]*toolpluginv1.Tool{{MaxOutputBytes: 1<<64 - 1, MaxConcurrency: 1<<32 - 1, Timeout: durationpb.New(-1)}})
	if err != nil || got[0].MaxOutput < 0 || got[0].MaxConcurrency < 0 || got[0].Timeout != 0 {
		t.Errorf("specsFrom() of huge numbers = %+v, %v", got, err)
	}
}

func TestCallRequest(t *testing.T) {
	call := tool.Call{ID: "tc_1", Tool: "t", Arguments: []byte(`{}`), CommandTree: []byte(`{"Type":"File"}`), Context: tool.Context{
		Session: "s", User: "u", Client: "c", Traceparent: "p", Attempt: 2, ApprovalID: "ap_1", PreviewDigest: []byte("d"),
		MaxOutput: 3, Roots: []string{"/r"}, Protected: []string{"/p"}, UserDir: "/u", Ticket: []byte("k"),
		Files: &tool.FilePolicy{Sensitive: []string{".env"}, Allowed: []string{"/r/.env"}, Protect: []string{"git"}, Forbidden: []string{"**/x"}},
	}, Judged: []tool.Judged{{
		Execution: tool.Execution{Argv: []string{"a"}, Environment: []string{"B=c"}, Directory: "/d", File: "/f", Write: true},
		Unlinked:  []string{"/u"},
	}}, JudgedUntil: time.Unix(5, 7)}
	got := callRequest(call)
	wantAllSet(t, got)
	if j := got.GetJudged()[0]; j.GetPart().GetArgv()[0] != "a" || j.GetPart().GetFile() != "/f" || j.GetUnlinked()[0] != "/u" {
		t.Errorf("callRequest() has the judged part %v", j)
	} else {
		wantAllSet(t, j)
	}
	if until := got.GetJudgedUntil().AsTime(); !until.Equal(call.JudgedUntil) {
		t.Errorf("callRequest() has answers until %v, want %v", until, call.JudgedUntil)
	}
	if tree := string(got.GetCommandTreeJson()); tree != `{"Type":"File"}` {
		t.Errorf("callRequest() has the tree %q", tree)
	}
	if f := got.GetContext().GetFiles(); f.GetSensitive()[0] != ".env" || f.GetAllowed()[0] != "/r/.env" || f.GetProtect()[0] != "git" || f.GetForbidden()[0] != "**/x" {
		t.Errorf("callRequest() has the files %v", f)
	}
	if c := got.GetContext(); c.GetCallId() != "tc_1" || c.GetAttempt() != 2 || c.GetMaxOutputBytes() != 3 || c.GetRoots()[0] != "/r" || c.GetProtected()[0] != "/p" || string(c.GetTicket()) != "k" {
		t.Errorf("callRequest() = %v", got)
	}
}

func TestResultFrom(t *testing.T) {
	message := &toolpluginv1.Result{
		Error: &toolpluginv1.Error{
			Code: "not_found", Message: strings.Repeat("é", maxMessage), Hint: "h", Retryable: true, RetryAfter: durationpb.New(time.Second + 1),
		},
		Effects:      []*toolpluginv1.Effect{{Kind: "file.changed", Target: "a", Operation: "create"}},
		MetadataJson: []byte(`{"n":1}`), StructuredJson: []byte(`[1]`),
		Content: []*toolpluginv1.Content{
			{Kind: toolpluginv1.Content_KIND_TEXT, Data: []byte("x")},
			{Kind: toolpluginv1.Content_KIND_IMAGE, MediaType: "image/png", Data: []byte("\xff")},
			{Kind: toolpluginv1.Content_KIND_AUDIO, MediaType: "audio/wav"},
			{Kind: toolpluginv1.Content_KIND_RESOURCE_LINK, Uri: "file:///a", Name: "a"},
			{Kind: toolpluginv1.Content_KIND_RESOURCE, Uri: "file:///b", MediaType: "application/x", Data: []byte("\xff")},
		},
	}
	wantAllSet(t, message)
	want := tool.Result{
		Error:   &tool.Error{Code: tool.NotFound, Message: strings.Repeat("é", maxMessage/2), Hint: "h", Retryable: true, RetryAfter: time.Second + 1},
		Effects: []tool.Effect{{Kind: "file.changed", Target: "a", Operation: "create"}}, Metadata: map[string]any{"n": 1.0}, Structured: []byte(`[1]`),
		Content: []tool.Content{
			tool.Text("x"),
			{Kind: tool.KindImage, MediaType: "image/png", Data: []byte("\xff")},
			{Kind: tool.KindAudio, MediaType: "audio/wav"},
			{Kind: tool.KindResourceLink, URI: "file:///a", Name: "a"},
			{Kind: tool.KindResource, URI: "file:///b", MediaType: "application/x", Data: []byte("\xff")},
		},
	}
	got, err := resultFrom(message)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(tool.Error{})); diff != "" {
		t.Errorf("resultFrom() (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		name    string
		message *toolpluginv1.Result
		want    string
	}{
		{"metadata", &toolpluginv1.Result{MetadataJson: []byte(`[1]`)}, "metadata is not a JSON object"},
		{"text resource", &toolpluginv1.Result{Content: []*toolpluginv1.Content{{Kind: toolpluginv1.Content_KIND_RESOURCE, MediaType: "text/plain", Data: []byte("\xff")}}}, "not valid UTF-8"},
		{"parts", &toolpluginv1.Result{Content: make([]*toolpluginv1.Content, maxParts+1)}, "1001 parts of content, more than 1000"},
		{"effects", &toolpluginv1.Result{Effects: make([]*toolpluginv1.Effect, maxParts+1)}, "1001 effects, more than 1000"},
		{"no kind", &toolpluginv1.Result{Content: []*toolpluginv1.Content{{}}}, "unknown kind 0"},
		{"no code", &toolpluginv1.Result{Error: &toolpluginv1.Error{Message: "m"}}, `unknown code ""`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := resultFrom(tt.message); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("resultFrom() = %v, want %q", err, tt.want)
			}
		})
	}
}

func FuzzResultFrom(f *testing.F) {
	seed, err := proto.Marshal(&toolpluginv1.Result{
		Error: &toolpluginv1.Error{Code: "failed", Message: "m", RetryAfter: durationpb.New(-1)}, StructuredJson: []byte(`{}`),
		Content: []*toolpluginv1.Content{{Kind: toolpluginv1.Content_KIND_TEXT, Data: []byte("x")}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		message := new(toolpluginv1.Result)
		if decode(data, message) != nil {
			return
		}
		result, err := resultFrom(message)
		if err != nil {
			return
		}
		if !utf8.ValidString(result.Text()) || !utf8.Valid(result.Structured) {
			t.Errorf("resultFrom(%v) = %+v", message, result)
		}
		if result.Error != nil && (!result.Error.Code.Valid() || result.Error.RetryAfter < 0) {
			t.Errorf("resultFrom(%v).Error = %+v", message, result.Error)
		}
	})
}

func FuzzSpecsFrom(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		message := new(toolpluginv1.DescribeResponse)
		if decode(data, message) != nil {
			return
		}
		specs, err := specsFrom(message.GetTools())
		if err != nil {
			return
		}
		for _, s := range specs {
			if s.MaxOutput < 0 || s.Timeout < 0 || s.MaxConcurrency < 0 {
				t.Errorf("specsFrom() = %+v", s)
			}
		}
	})
}
