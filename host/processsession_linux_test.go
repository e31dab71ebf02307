package main

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// otherClient is a process that passes requests to the host over a connection of its own.
type otherClient struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	h   *host
}

// clientProcess starts a client.
func clientProcess(t *testing.T, h *host) *otherClient {
	t.Helper()
	address, err := url.Parse(h.url)
	if err != nil {
		t.Fatal(err)
	}
	c := &otherClient{h: h, cmd: exec.CommandContext(t.Context(), "bash", "-c",
		fmt.Sprintf("exec 3<>/dev/tcp/%s/%s; cat <&3 & cat >&3", address.Hostname(), address.Port()))}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.in.Close() })
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// call makes a call in the revision without sessions and returns the answer.
func (c *otherClient) call(t *testing.T, tool, arguments string) string {
	t.Helper()
	header, body := statelessCall(tool, arguments)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.h.url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	r.Header.Set("Authorization", "Bearer "+c.h.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if err := r.Write(c.in); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(c.out, r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// jobID matches the id of a job in a result.
var jobID = regexp.MustCompile(`job_[a-zA-Z0-9]+`)

// TestSessionIsTheProcess has two processes with the same name call over HTTP without
// sessions. Neither sees the other's job, and a job ends with the process that started it.
func TestSessionIsTheProcess(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+fmt.Sprintf(shellUnasked, "host")))
	first, second := clientProcess(t, h), clientProcess(t, h)
	marks := []string{"job-" + rand.Text(), "job-" + rand.Text()}
	var started []string
	for i, c := range []*otherClient{first, second} {
		answer := c.call(t, "shell_background", fmt.Sprintf(`{"command":"bash -c 'exec -a %s sleep 1000'"}`, marks[i]))
		started = append(started, jobID.FindString(answer))
		if started[i] == "" {
			t.Fatalf("shell_background answers %s, want a job", answer)
		}
		eventually(t, "the job is there", func() bool { return marked(marks[i]) == 1 })
	}
	if got := first.call(t, "process_list", "{}"); !strings.Contains(got, started[0]) || strings.Contains(got, started[1]) {
		t.Errorf("the first client has the jobs %s, want only %s", got, started[0])
	}
	for _, call := range []struct{ tool, arguments string }{
		{"process_output", `{"job":"` + started[0] + `"}`}, {"process_kill", `{"job":"` + started[0] + `"}`},
	} {
		if got := second.call(t, call.tool, call.arguments); !strings.Contains(got, "this session has no job") {
			t.Errorf("%s of another process's job answers %s", call.tool, got)
		}
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait() // it was killed
	eventually(t, "the job of the killed client has ended", func() bool { return marked(marks[0]) == 0 })
	if n := marked(marks[1]); n != 1 {
		t.Errorf("%d jobs of the other client are left, want its one", n)
	}
}
