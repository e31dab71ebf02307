package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth/certificate"
	"github.com/toolhost/toolhost/host/internal/auth/certificate/certtest"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
)

// TestRemoteApprover: a person on another machine logs in on a terminal, which does not show the
// token, watches the host and decides there, and is told when it is gone.
func TestRemoteApprover(t *testing.T) {
	t.Parallel()
	dir, authority := t.TempDir(), certtest.New(t)
	cert, err := certificate.NewReloader(authority.Write(t, dir, time.Now().Add(90*24*time.Hour)), nil)
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, []byte(authority.PEM), 0o600); err != nil {
		t.Fatal(err)
	}
	h := httpapitest.Start(t, httpapitest.Options{TLS: cert.TLS(), Patience: time.Millisecond})
	run := func(args ...string) *screen {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "toolhost"), args...)
		cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir, "HOME="+dir, "TOOLHOST_CONFIG=", "TOOLHOST_URL=", "TOOLHOST_TOKEN=")
		return onTerminal(t, "", cmd)
	}
	s := run("login", h.URL, "--ca", ca)
	s.shows("token for " + h.URL + ": ")
	s.types(h.Approver + "\n")
	s.shows("logged in to " + h.URL + " as " + httpapitest.Ann + " (approver)")
	if err := s.cmd.Wait(); err != nil || strings.Contains(s.text, h.Approver) {
		t.Errorf("login: %v; the terminal shows\n%s", err, s.text)
	}

	s = run("approvals", "--url", h.URL)
	s.shows("watching: ")
	agent, err := client.New(client.Options{URL: h.URL, Token: h.Agent, CA: authority.PEM})
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	pending, err := agent.Call(t.Context(), client.Call{Tool: "write", Arguments: []byte(`{"text":"look at me"}`)})
	if err != nil || pending.Status != client.Pending {
		t.Fatalf("Call = %+v, %v", pending, err)
	}
	s.shows("look at me")
	s.shows("[y")
	s.types("y\n")
	s.shows("approved " + pending.ApprovalID)
	if got, err := agent.Outcome(t.Context(), pending.ToolCallID, patience); err != nil || got.Status != client.Success {
		t.Errorf("the call = %+v, %v", got, err)
	}
	h.Stop()
	s.shows("; trying again") // the host ended the stream, or failed to answer
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait() // its exit code is that of any watch
}
