package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
)

// Preview returns the preview of the tool of the same name, or misbehaves like the tool.
func (p *testPlugin) Preview(ctx context.Context, r *toolpluginv1.PreviewRequest) (*toolpluginv1.PreviewResponse, error) {
	all := func(data []byte) *toolpluginv1.PreviewResponse {
		return &toolpluginv1.PreviewResponse{Summary: "would do it", Content: []*toolpluginv1.Content{{Kind: toolpluginv1.Content_KIND_TEXT, Data: data}}}
	}
	fails := func(code string) (*toolpluginv1.PreviewResponse, error) {
		return &toolpluginv1.PreviewResponse{Error: &toolpluginv1.Error{Code: code, Message: "it cannot", Hint: "do another"}}, nil
	}
	switch r.GetTool() {
	case "echo":
		res := all(r.GetArgumentsJson())
		res.Digest = fmt.Appendf(nil, "%s %d", r.GetContext().GetUser(), len(r.GetContext().GetTicket()))
		return res, nil
	case "no_digest":
		return all([]byte("diff")), nil
	case "deadline":
		_, ok := ctx.Deadline()
		return all(fmt.Append(nil, ok)), nil
	case "ignore":
		fmt.Fprintln(os.Stderr, "goes on with a preview")
		hang()
	case "block":
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	case "exit":
		os.Exit(5)
	case "panic":
		panic("secret /home/somebody")
	case "large":
		return all(bytes.Repeat([]byte("x"), 17<<20)), nil
	case "many_parts":
		res := new(toolpluginv1.PreviewResponse)
		res.ProtoReflect().SetUnknown(empty(4))
		return res, nil
	case "parts":
		return &toolpluginv1.PreviewResponse{Content: slices.Repeat(all([]byte("x")).GetContent(), 1000+1)}, nil
	case "long_summary":
		return &toolpluginv1.PreviewResponse{Summary: strings.Repeat("x", (16<<10)+1)}, nil
	case "long_digest":
		return &toolpluginv1.PreviewResponse{Digest: make([]byte, (1<<10)+1)}, nil
	case "bad_summary":
		res := new(toolpluginv1.PreviewResponse)
		res.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "\xff"))
		return res, nil
	case "bad_kind":
		return &toolpluginv1.PreviewResponse{Content: []*toolpluginv1.Content{{Kind: 42}}}, nil
	case "bad_text":
		return all([]byte("a\xffb")), nil
	case "conflict":
		return fails("conflict")
	case "bad_code":
		return fails("oops")
	case "host_code":
		return fails("rejected")
	case "status":
		return nil, status.Error(codes.FailedPrecondition, "/home/somebody is not mounted")
	}
	return nil, status.Error(codes.Unimplemented, "no preview")
}

// hang never returns. The timer keeps the runtime from ending the process because all
// its goroutines wait.
func hang() {
	time.AfterFunc(24*time.Hour, func() {})
	select {}
}
