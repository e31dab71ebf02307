package pipeline

import (
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// TestCodesOfTheHostAreNotThePlugins checks that a plugin cannot report codes that only the
// host may use.
func TestCodesOfTheHostAreNotThePlugins(t *testing.T) {
	for code, want := range map[tool.Code]tool.Code{
		tool.Rejected: tool.Failed, tool.PendingApproval: tool.Failed, tool.UnknownOutcome: tool.Failed,
		"made_up": tool.Failed, tool.NotFound: tool.NotFound, tool.Conflict: tool.Conflict,
	} {
		if got := knownCode(&tool.Error{Code: code, Message: "said"}); got.Code != want || got.Message != "said" {
			t.Errorf("knownCode(%s) = %v, want code %s", code, got, want)
		}
	}
}
