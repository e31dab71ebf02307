package httpapi

import (
	"errors"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
)

// TestRequestLimit fills the room of one credential: another one still has its own.
func TestRequestLimit(t *testing.T) {
	agent := auth.Caller{User: "ada", Roles: auth.Agent}
	person := auth.Caller{User: "ada", Roles: auth.Approver | auth.Admin}
	u := requestLimit{most: maxAtOnce}
	var leaves []func()
	for range maxAtOnce {
		leave, err := u.enter(agent)
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	if _, err := u.enter(agent); err == nil {
		t.Error("one more request than there is room for gets in")
	} else if p, ok := errors.AsType[*Problem](err); !ok || p.Status != 429 || p.retryAfter == 0 {
		t.Errorf("enter = %v, want 429 and when to come again", err)
	}
	leave, err := u.enter(person)
	if err != nil {
		t.Errorf("the person who decides is kept out: %v", err)
	} else {
		leave()
	}
	for _, leave := range leaves {
		leave()
	}
	if len(u.requests) != 0 {
		t.Errorf("%d credentials are counted afterwards", len(u.requests))
	}
	if _, err := u.enter(agent); err != nil {
		t.Errorf("there is no room after all have left: %v", err)
	}
}

// TestRequestLimitInAll fills the room of all credentials together.
func TestRequestLimitInAll(t *testing.T) {
	u := requestLimit{most: 2, all: 3}
	enter := func(user string) (leave func()) {
		t.Helper()
		leave, err := u.enter(auth.Caller{User: user, Roles: auth.Agent})
		if err != nil {
			t.Fatal(err)
		}
		return leave
	}
	leave := enter("ada")
	enter("ada")
	enter("ben")
	if _, err := u.enter(auth.Caller{User: "cleo", Roles: auth.Agent}); err == nil {
		t.Error("one more request than there is room for gets in")
	}
	leave()
	enter("cleo")
}
