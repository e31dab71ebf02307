package approval_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

func Example() {
	if err := example(context.Background()); err != nil {
		fmt.Fprintln(os.Stdout, err)
	}
	// Output:
	// approved by ada
	// <nil>
	// conflict
}

func example(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "approval")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := store.Open(ctx, store.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer s.Close()
	grants, err := approval.NewGrants(ctx, approval.GrantOptions{Store: s})
	if err != nil {
		return err
	}
	defer grants.Close()
	service, err := approval.New(ctx, approval.Options{Store: s, Grants: grants})
	if err != nil {
		return err
	}
	defer service.Close()

	question := approval.Question{
		Call: "tc_1", User: "ada", Plugin: "files", Tool: "put", Tier: tool.SideEffecting,
		Verdict: policy.Ask, Rule: "tier side_effecting", Arguments: json.RawMessage(`{"path":"a.txt"}`),
	}
	record, err := service.Ask(ctx, question)
	if err != nil {
		return err
	}
	// Another person, elsewhere.
	if _, err := service.Decide(ctx, approval.Decision{
		ID: record.ID, Approve: true, Via: "cli", By: auth.Caller{User: "ada", Roles: auth.Approver},
		ArgumentsHash: record.ArgumentsHash, PreviewDigest: record.PreviewDigest,
	}); err != nil {
		return err
	}
	record, err = service.Wait(ctx, record.ID)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, record.State, "by", record.DecidedBy)
	fmt.Fprintln(os.Stdout, service.Spend(ctx, record.ID, "tc_1", question.Binding()))
	fmt.Fprintln(os.Stdout, tool.AsError(service.Spend(ctx, record.ID, "tc_2", question.Binding())).Code)
	return nil
}

func ExampleView_Text() {
	view := approval.Show(approval.Record{
		ID: "ap_1", State: approval.Open, User: "ada", Tool: "put", Plugin: "files", Tier: tool.SideEffecting,
		Verdict: policy.Ask, Rule: "tier side_effecting", Arguments: json.RawMessage(`{"path":"a\u202etxt.exe"}`),
	})
	fmt.Fprint(os.Stdout, view.Text(80))
	// Output:
	// Approval: ap_1
	// State:    open, until 0001-01-01T00:00:00Z
	// Tool:     put
	// Plugin:   files
	// Tier:     side_effecting
	// User:     ada
	// Rule:     ask, by tier side_effecting
	// Arguments:
	//   | {
	//   |   "path": "a\u202etxt.exe"
	//   | }
}
