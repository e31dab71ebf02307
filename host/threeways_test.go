package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/state/journal"
)

// way is a front end. It makes a call and returns what the caller reads, and whether the call
// failed. It returns after the call has ended.
type way struct {
	name string
	call func(ctx context.Context, tool string, args map[string]any) (text string, failed bool, err error)
}

// ways returns all front ends of a host.
func ways(t *testing.T, h *host) []way {
	t.Helper()
	s := connectTo(t, toolhost(context.WithoutCancel(t.Context()), h.config, "mcp"), revisions[0], nil)
	return []way{
		{"MCP", func(ctx context.Context, tool string, args map[string]any) (string, bool, error) {
			r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
			if err != nil {
				return "", true, err
			}
			return textOf(r), r.IsError, nil
		}},
		{"REST", func(_ context.Context, tool string, args map[string]any) (string, bool, error) {
			_, text, err := h.send("POST", "/v1/calls", h.token, asJSON(map[string]any{"tool": tool, "arguments": args}))
			if err != nil {
				return "", true, err
			}
			var o client.Outcome
			err = json.Unmarshal([]byte(text), &o)
			return text, o.Status != client.Success, err
		}},
		{"CLI", func(_ context.Context, tool string, args map[string]any) (string, bool, error) {
			stdout, stderr, code := h.cli("call", tool, asJSON(args))
			return stdout + stderr, code != 0, nil
		}},
	}
}

// answer is the outcome of a call.
type answer struct {
	text   string
	failed bool
	err    error
}

// ask makes a call that must wait, decides on it with the command line, and returns its
// outcome.
func ask(t *testing.T, h *host, w way, args map[string]any, decide ...string) answer {
	t.Helper()
	ended := make(chan answer, 1)
	go func() { // ends with the call, which is decided below
		text, failed, err := w.call(t.Context(), "write_file", args)
		ended <- answer{text, failed, err}
	}()
	id := h.open(t, 1)[0].ID
	select {
	case a := <-ended:
		t.Fatalf("over %s the call did not wait: %+v", w.name, a)
	default:
	}
	path, _ := args["path"].(string)
	if before := h.file(path); before != "" {
		t.Fatalf("over %s %s holds %q before anybody has approved that", w.name, path, before)
	}
	h.answer(t, append([]string{decide[0], id}, decide[1:]...)...)
	return <-ended
}

// TestThreeWaysAreOne makes the same write over MCP, REST and the command line: each waits,
// runs if approved, does not run if rejected, and leaves the same rows. The control is a
// configuration that never asks.
func TestThreeWaysAreOne(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+writing))
	args := map[string]any{"path": "a.txt", "content": "hello\n"}
	var approved, rejected [][]journal.Record
	for _, w := range ways(t, h) {
		seen := len(h.journal(t, "--limit", "1000"))
		a := ask(t, h, w, args, "approve")
		if a.failed || a.err != nil || h.file("a.txt") != "hello\n" {
			t.Errorf("over %s an approved write came to %+v, and the file holds %q", w.name, a, h.file("a.txt"))
		}
		rows := h.journal(t, "--limit", "1000")
		approved, seen = append(approved, plain(rows[seen:])), len(rows)

		if err := removeFile(h, "a.txt"); err != nil {
			t.Fatal(err)
		}
		a = ask(t, h, w, args, "reject", "--message", "wrong file")
		if !a.failed || a.err != nil || h.file("a.txt") != "" {
			t.Errorf("over %s a rejected write came to %+v, and the file holds %q", w.name, a, h.file("a.txt"))
		}
		if !strings.Contains(a.text, "User rejected the operation") || !strings.Contains(a.text, "wrong file") {
			t.Errorf("over %s the model reads %q, want that the user rejected it, and why", w.name, a.text)
		}
		rejected = append(rejected, plain(h.journal(t, "--limit", "1000")[seen:]))
	}
	for i, w := range []string{"REST", "CLI"} {
		for what, rows := range map[string][][]journal.Record{"approved": approved, "rejected": rejected} {
			if diff := cmp.Diff(rows[0], rows[i+1]); diff != "" {
				t.Errorf("the rows of an %s write over MCP and over %s (-MCP +%s):\n%s", what, w, w, diff)
			}
		}
	}
	want := []journal.Record{
		{Kind: journal.Start, Verdict: "ask", Rule: "tier side_effecting", ApprovedBy: "user"},
		{Kind: journal.End, Verdict: "ask", Rule: "tier side_effecting", ApprovedBy: "user", Status: "success"},
		{Kind: journal.End, Verdict: "ask", Rule: "tier side_effecting", Status: "rejected"},
	}
	for i, row := range slices.Concat(approved[0], rejected[0]) {
		got := journal.Record{Kind: row.Kind, Verdict: row.Verdict, Rule: row.Rule, ApprovedBy: row.ApprovedBy, Status: row.Status}
		if i >= len(want) || !cmp.Equal(got, want[i]) {
			t.Errorf("row %d = %+v, want %+v", i, got, want)
		}
	}

	h = serve(t, writeConfig(t, listening+strings.Replace(writing, "\n}", "\n approval { side_effecting = \"allow\" }\n}", 1)))
	for _, w := range ways(t, h) {
		if text, failed, err := w.call(t.Context(), "write_file", args); failed || err != nil || h.file("a.txt") != "hello\n" {
			t.Errorf("control: over %s a write that nobody is asked about came to %q, %v", w.name, text, err)
		}
		if err := removeFile(h, "a.txt"); err != nil {
			t.Fatal(err)
		}
	}
}

// plain removes from rows the fields that differ between two equal calls.
func plain(rows []journal.Record) []journal.Record {
	rows = slices.Clone(rows)
	for i, r := range rows {
		rows[i] = journal.Record{
			Kind: r.Kind, Tool: r.Tool, Plugin: r.Plugin, Digest: r.Digest, Tier: r.Tier, User: r.User,
			Arguments: r.Arguments, ArgumentsHash: r.ArgumentsHash, Verdict: r.Verdict, Rule: r.Rule, Where: r.Where,
			ApprovedBy: r.ApprovedBy, Approver: r.Approver, Status: r.Status, Code: r.Code, Error: r.Error,
			ResultDigest: r.ResultDigest, Bytes: r.Bytes, Attempts: r.Attempts, Repairs: r.Repairs, Notice: r.Notice,
		}
	}
	return rows
}

// TestAgentsDecideNothing sends an agent's credential to every route for approvals. The
// control sends the same requests with a token that differs only in its role, since the binary
// has no other way to remove the protection. On the control socket, which has no tokens, the
// control uses the key.
func TestAgentsDecideNothing(t *testing.T) {
	t.Parallel()
	user := auth.LocalUser("")
	secret, digest := auth.NewToken()
	token := fmt.Sprintf("auth {\n token \"lead\" {\n sha256 = %q\n user = %q\n roles = [\"approver\"]\n }\n}\n", digest, user)
	h := serve(t, writeConfig(t, listening+writing+token))
	_, id := h.begin(t, "write_file", map[string]any{"path": "a.txt", "content": "hello\n"})
	requests := []struct {
		method, path, body string
		approver           int // the status of the same request by an approver
	}{
		{"GET", "/v1/approvals", "", 200},
		{"GET", "/v1/approvals/" + id, "", 200},
		{"GET", "/v1/grants", "", 200},
		{"DELETE", "/v1/grants/gr_0", "", 404},
		{"POST", "/v1/approvals/" + id + "/approve", "{}", 200},
		{"POST", "/v1/approvals/" + id + "/reject", "{}", 409}, // it was approved
	}
	for _, r := range requests {
		h.must(t, 403, r.method, r.path, h.token, r.body)
	}
	if records := h.open(t, 1); records[0].ID != id || h.file("a.txt") != "" {
		t.Fatalf("after the attacks %+v is open, and the file holds %q", records, h.file("a.txt"))
	}
	seen := h.seen(t, id)
	for _, r := range requests {
		h.must(t, r.approver, r.method, r.path, secret, strings.Replace(r.body, "{}", seen, 1))
	}
	eventually(t, "control: the write has run", func() bool { return h.file("a.txt") == "hello\n" })

	_, id = h.begin(t, "write_file", map[string]any{"path": "b.txt", "content": "hello\n"})
	agent, err := client.New(client.Options{StateDir: h.stateDir})
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	if _, err := agent.Approve(t.Context(), id, client.Answer{}); err == nil || !strings.Contains(err.Error(), "role") {
		t.Errorf("an agent on the control socket that approves gets %v, want that it lacks the role", err)
	}
	if records := h.open(t, 1); records[0].ID != id || h.file("b.txt") != "" {
		t.Fatalf("after the attack %+v is open, and the file holds %q", records, h.file("b.txt"))
	}
	if _, err := h.approver(t).Approve(t.Context(), id, client.Answer{}.Seen(h.open(t, 1)[0])); err != nil {
		t.Fatalf("control: with the key: %v", err)
	}
	eventually(t, "control: the second write has run", func() bool { return h.file("b.txt") == "hello\n" })
}

// TestApprovingOneFreesNoOther has three calls wait, two of them equal, and approves one.
func TestApprovingOneFreesNoOther(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting))
	a, approvalOfA := h.begin(t, "probe_count", map[string]any{"note": "a"})
	alike, _ := h.begin(t, "probe_count", map[string]any{"note": "a"})
	b, _ := h.begin(t, "probe_count", map[string]any{"note": "b"})
	h.answer(t, "approve", approvalOfA)
	if o := h.outcome(t, a); o.Status != client.Success {
		t.Errorf("the approved call = %s", asJSON(o))
	}
	for _, id := range []string{alike, b} {
		status, text, err := h.send("GET", "/v1/calls/"+id, h.token, "")
		if o := outcomeOf(t, status, text, err); o.Status != client.Pending {
			t.Errorf("another call = %s, want that it waits", text)
		}
	}
	if want := []string{a + "," + approvalOfA + ",a"}; !slices.Equal(h.counted(), want) {
		t.Errorf("calls have run: %v, want %v", h.counted(), want)
	}
	for _, r := range h.open(t, 2) { // the control: they run once approved
		h.answer(t, "approve", r.ID)
	}
	eventually(t, "all calls have run", func() bool { return bytes.Count([]byte(h.file("count")), []byte("\n")) == 3 })
}
