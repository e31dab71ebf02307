package sdktest_test

import (
	"context"
	"fmt"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Check reports the mistakes of a plugin; [sdktest.Run] makes each finding an error of a test.
func ExampleCheck() {
	p := sdk.New("example", "1.0.0")
	sdk.AddTool(p, tool.Spec{Name: "half", Description: "Fails.", Tier: tool.ReadOnly},
		func(context.Context, *sdk.Call, struct{}) (string, error) {
			return "", tool.Errorf(tool.NotFound, "no such thing")
		})
	findings := sdktest.Check(context.Background(), sdktest.InProcess(p), sdktest.Options{
		Calls: []sdktest.Call{{Tool: "half"}},
	})
	for _, f := range findings {
		fmt.Println(f)
	}
	// Output: call: tool "half": fails: not_found: no such thing
}
