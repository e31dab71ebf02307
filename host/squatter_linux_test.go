package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// squatterVariable names the address on which TestSquatterItself listens.
const squatterVariable = "TOOLHOST_TEST_SQUATTER"

// squatterUID is an account that no other process uses.
const squatterUID = 64017

// stolen is the answer to a stolen token.
type stolen struct {
	Status int
	Body   string
}

// TestSquatterItself is not a test but the process of [TestSquatterOnThePort]. It listens on
// the port and keeps each token that it receives. When a connection brings none, it sends all
// tokens to the address that the test then gives it.
func TestSquatterItself(t *testing.T) {
	address := os.Getenv(squatterVariable)
	if address == "" {
		return
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(os.Stdout, "listening")
	var tokens []string
	for {
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			break
		}
		tokens = append(tokens, request.Header.Get("Authorization"))
		_, _ = io.WriteString(conn, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		_ = conn.Close()
	}
	_ = listener.Close()
	var url string
	if _, err := fmt.Scanln(&url); err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/calls", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", token)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(os.Stdout, asJSON(stolen{response.StatusCode, string(body)}))
	}
}

// TestSquatterOnThePort has a process of another account listen on the host's port while the
// host is down. Clients send it their tokens, which it uses when the host is up again. The
// controls are tokens that may be used from any account, and from the squatter's.
func TestSquatterOnThePort(t *testing.T) {
	t.Parallel()
	account := squatterUID
	if os.Geteuid() != 0 {
		t.Log("this test lacks root, which can start a process of another account: the squatter has this one, and the host's own token is not tried")
		account = os.Geteuid()
	}
	var blocks strings.Builder
	var tokens []string
	for _, block := range []struct{ name, account string }{
		{"other", `"64018"`}, {"anyone", `"any"`}, {"its", fmt.Sprintf("%q", fmt.Sprint(account))},
	} {
		text, secret := agentToken(t, block.name, "")
		blocks.WriteString(strings.Replace(text, "    roles ", "    account = "+block.account+"\n    roles ", 1))
		tokens = append(tokens, secret)
	}
	config := writeConfig(t, listening+counting+"auth {\n"+blocks.String()+"}\n")
	h := &host{config: config, dir: filepath.Dir(config), logLevel: "warn"}
	h.restart(t)
	t.Cleanup(h.stop)
	address := strings.TrimPrefix(h.url, "http://")
	h.stop()

	squatter := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestSquatterItself$")
	squatter.Dir = "/"
	squatter.Env = []string{binVariable + "=" + bin, squatterVariable + "=" + address}
	if os.Geteuid() == 0 {
		squatter.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: squatterUID, Gid: squatterUID}}
		tokens = append(tokens, h.token)
	}
	in, errIn := squatter.StdinPipe()
	out, errOut := squatter.StdoutPipe()
	if errIn != nil || errOut != nil {
		t.Fatal(errIn, errOut)
	}
	squatter.Stderr = os.Stderr
	if err := squatter.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = squatter.Process.Kill(); _ = squatter.Wait() })
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); line != "listening\n" {
		t.Fatalf("the squatter says %q, %v", line, err)
	}
	for _, token := range tokens {
		h.must(t, 503, "GET", "/v1/calls", token, "")
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	h.restart(t)
	if _, err := fmt.Fprintln(in, h.url); err != nil {
		t.Fatal(err)
	}
	answers := make([]stolen, len(tokens))
	for i := range tokens {
		line, err := said.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &answers[i])
		}
		if err != nil {
			t.Fatalf("the squatter says %q, %v", line, err)
		}
	}
	refusal := fmt.Sprintf(`the token \"other\" is for another account (uid 64018): it was sent by uid %d`, account)
	if got := answers[0]; got.Status != 403 || !strings.Contains(got.Body, refusal) {
		t.Errorf("a token for another account, from the squatter = %d %s, want 403 %s", got.Status, got.Body, refusal)
	}
	for i, control := range []string{"for any account", "for its own account"} {
		if got := answers[1+i]; got.Status != 200 {
			t.Errorf("control: a token %s, from the squatter = %d %s, want 200", control, got.Status, got.Body)
		}
	}
	if want := fmt.Sprintf("an account sent a token that it may not use: token=other uid=%d", account); !strings.Contains(h.said(), want) {
		t.Errorf("the log says %q, want %q", h.said(), want)
	}
	if os.Geteuid() == 0 {
		if got := answers[3]; got.Status != 403 || !strings.Contains(got.Body, `\"local\"`) {
			t.Errorf("agent.token, from the squatter = %d %s, want 403", got.Status, got.Body)
		}
	}
	h.must(t, 200, "GET", "/v1/calls", h.token, "") // control: from the host's account
}
