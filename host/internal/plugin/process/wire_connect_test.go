package process

import (
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// TestTicketsAreRevoked: nothing is left of a ticket when its call has ended. A ticket gives only what
// the call may request.
func TestTicketsAreRevoked(t *testing.T) {
	var open tickets
	call := &tool.Call{ID: "c1", Context: tool.Context{User: "ann"}}
	nothing, revoke := open.issue(t.Context(), call, &tool.Sink{})
	if err := open.decide(nothing, tool.Execution{}); err == nil || err.Code != tool.PermissionDenied {
		t.Errorf("decide() = %v for a call that may execute nothing, want permission_denied", err)
	}
	if _, _, err := open.ask(nothing); err == nil || err.Code != tool.Unavailable {
		t.Errorf("ask() = %v for a call whose user cannot be asked, want unavailable", err)
	}
	revoke()
	name, revoke := open.issue(t.Context(), call, &tool.Sink{MayRun: func(tool.Execution) *tool.Error { return nil }})
	if user, err := open.userOf(name); err != nil || user != "ann" {
		t.Errorf("userOf() = %q, %v while the call runs", user, err)
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
