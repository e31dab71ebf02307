package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
)

const programVar = "HTTPAPI_TEST_PROGRAM"

// programs are the programs that this test binary can become.
func programs() map[string]func(args []string) int {
	return map[string]func([]string) int{"approve": approveAsChild, "orphan": approveAsOrphan}
}

// approveAsChild tries to approve over the control socket with the approver's
// key, which it has got hold of, and prints the answer.
func approveAsChild(args []string) int {
	dir, key, id := args[0], args[1], args[2]
	c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return auth.DialControl(ctx, dir)
	}}}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://localhost/v1/approvals/"+id+"/approve", nil)
	if err != nil {
		return 1
	}
	r.Header.Set("Authorization", "Bearer "+key)
	response, err := c.Do(r)
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return 1
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	fmt.Fprintf(os.Stdout, "%d %s\n", response.StatusCode, text)
	return 0
}

// approveAsOrphan does the same in its own session, after its parent has ended.
func approveAsOrphan(args []string) int {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), programVar+"=approve")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 1
	}
	return 0
}

// A process that a plugin has started cannot approve, even with the approver's key. The control
// is the same request by the host's own process.
func TestPluginsChildCannotApprove(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{Patience: time.Millisecond})
	var pending outcome
	ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"wipe"}`).into(t, http.StatusAccepted, &pending)
	for _, program := range []string{"approve", "orphan"} {
		cmd := exec.Command(os.Args[0], h.StateDir, h.Key, pending.ApprovalID)
		cmd.Env = append(os.Environ(), programVar+"="+program)
		out, err := cmd.Output() // an orphan holds the pipe until it has printed
		if err != nil || !strings.HasPrefix(string(out), "403 ") || !strings.Contains(string(out), "closed to this process") {
			t.Errorf("%s: %v, %s; want 403", program, err, out)
		}
	}
	got := askControl(t, h, h.Key, "POST", "/v1/approvals/"+pending.ApprovalID+"/approve", seen(t, h, pending.ApprovalID, ""))
	if got.status != http.StatusOK {
		t.Errorf("the host's own process: %d %s, want 200", got.status, got.body)
	}
	var done outcome
	ask(t, h, h.Agent, "GET", "/v1/calls/"+pending.ToolCallID+"?wait=1m", "").into(t, http.StatusOK, &done)
	if done.Status != "success" {
		t.Errorf("the approved call: %+v", done)
	}
}
