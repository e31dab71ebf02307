package operation

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/tool"
)

func TestOutcomeJSON(t *testing.T) {
	for _, tt := range []struct {
		name   string
		result tool.Result
		want   string
	}{
		{
			"text and what is not text",
			tool.Result{
				Content:  []tool.Content{tool.Text("a"), {Kind: tool.KindImage, MediaType: "image/png", Data: []byte("png")}, tool.Text("b")},
				Metadata: map[string]any{"n": 1},
			},
			`{"status":"success","tool_call_id":"tc_1","result":{"content":"a\nb","parts":[{"kind":"image","media_type":"image/png","data":"cG5n"}],"metadata":{"n":1}},"execution_time_ms":15}`,
		},
		{
			"a failure without a result",
			tool.ErrorResult(tool.Errorf(tool.Unavailable, "busy").WithHint("wait").WithRetry(250 * time.Millisecond)),
			`{"status":"error","tool_call_id":"tc_1","error":{"code":"UNAVAILABLE","message":"busy","hint":"wait","recoverable":true,"retry_after_ms":250},"execution_time_ms":15}`,
		},
		{
			"a failure that has changed something",
			tool.Result{Effects: []tool.Effect{{Kind: "file.changed", Target: "a", Operation: "create"}}, Error: tool.Errorf(tool.Failed, "half")},
			`{"status":"error","tool_call_id":"tc_1","result":{"content":"","effects":[{"kind":"file.changed","target":"a","operation":"create"}]},"error":{"code":"FAILED","message":"half","recoverable":false},"execution_time_ms":15}`,
		},
		{
			"a rejection",
			tool.ErrorResult(tool.Errorf(tool.Rejected, "User rejected the operation").WithHint("Wrong file path")),
			`{"status":"rejected","tool_call_id":"tc_1","reason":"User rejected the operation","user_message":"Wrong file path","execution_time_ms":15}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := json.Marshal(Outcome{ID: "tc_1", Result: tt.result, Duration: 15 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("differs (-want +got):\n%s", diff)
			}
		})
	}
}
