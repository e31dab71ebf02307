package process

import (
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// TestTicketsAreRevoked: nothing is left of a ticket when its call has ended, and a
// call that may request nothing gets none.
func TestTicketsAreRevoked(t *testing.T) {
	var open tickets
	if name, _ := open.issue(t.Context(), "", nil, nil, false); name != nil {
		t.Errorf("issue() = %x for a call that may request nothing, want none", name)
	}
	allow := func(tool.Execution) *tool.Error { return nil }
	name, revoke := open.issue(t.Context(), "", nil, allow, false)
	if _, err := open.userOf(name); err != nil {
		t.Errorf("userOf() = %v while the call runs", err)
	}
	if err := open.decide(name, tool.Execution{}); err != nil {
		t.Errorf("decide() = %v while the call runs", err)
	}
	revoke()
	if _, err := open.userOf(name); err == nil || err.Code != tool.PermissionDenied {
		t.Errorf("userOf() = %v when the call has ended, want permission_denied", err)
	}
	if len(open.open) != 0 {
		t.Errorf("%d tickets are left when no call is", len(open.open))
	}
}
