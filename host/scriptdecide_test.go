package main

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toolhost/toolhost/host/internal/front/client"
)

// decide returns a script command that waits for the only open approval of the host whose state is
// in the directory state, and approves or rejects it ("approve" or "reject") as a person does who
// has seen it. If it has an argument, a pattern, "TOOL: SUMMARY" of the approval must match it. It
// starts no program; those that do this are tested in approvals.txtar.
func decide(verb string) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) > 1 {
			ts.Fatalf("usage: %s [PATTERN]", verb)
		}
		pattern, err := regexp.Compile(strings.Join(args, ""))
		ts.Check(err)
		state := ts.MkAbs("state")
		c, err := client.New(client.Options{StateDir: state, Token: strings.TrimSpace(ts.ReadFile(filepath.Join(state, "approver.key")))})
		ts.Check(err)
		defer c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		open, err := c.Approvals(ctx, client.ApprovalFilter{Wait: time.Minute})
		ts.Check(err)
		if len(open) != 1 {
			ts.Fatalf("%d calls wait for approval, want one", len(open))
		}
		shown, err := c.Approval(ctx, open[0].ID)
		ts.Check(err)
		if text := shown.Tool + ": " + shown.Summary; !pattern.MatchString(text) {
			ts.Fatalf("%q waits for approval, want %q", text, pattern)
		}
		answer := client.Answer{}.Seen(shown.Record)
		if verb == "approve" {
			_, err = c.Approve(ctx, shown.ID, answer)
		} else {
			_, err = c.Reject(ctx, shown.ID, answer)
		}
		ts.Check(err)
	}
}
