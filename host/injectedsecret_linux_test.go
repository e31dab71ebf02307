package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// injecting enables the shell plugin with a proxy that adds a secret for one of two hosts. Programs may
// dump their memory.
const injecting = `
server { listen = "127.0.0.1:0" }
policy { actions_per_hour = "unlimited" }
secret "api" { value = env("API_SECRET") }
plugin "shell" {
  tier   = "privileged"
  claims = "trust"
  sandbox {
    isolation = "strict"
    limits {
      core      = "256MiB"
      memory    = "1GiB"
      processes = 256
    }
    filesystem { exec = ["system"] }
    network {
      mode    = "proxy"
      allow   = ["api.example.com", "www.example.com"]
      private = true
      inject "api.example.com" {
        prefix = "Bearer "
        secret = "api"
      }
    }
  }
  tool "shell_exec" { approval = "allow" }
}
`

// usesSecret is a program that makes requests with the secret, and stays in the middle of one. Its mark
// exists in its memory only: the parts are joined when it runs.
const usesSecret = `
import os, urllib.error, urllib.request as r
mark = "-".join(["mark", "of", "the", "program", "%s"])
def get(url, **more):
    try:
        return r.urlopen(r.Request(url, **more)).read()
    except urllib.error.HTTPError as e:
        return e.read()
for host in ("api", "www"):
    for i in range(5):
        get("https://%%s.example.com/%%d" %% (host, i))
    get("http://%%s.example.com/" %% host)
get("https://api.example.com/", method="TRACE")
get("https://api.example.com/", headers={"Authorization": "mine"})
get("https://www.example.com/", headers={"Host": "api.example.com"})
get("https://api.example.com/hold")
`

// TestInjectedSecretIsNowhere looks for a secret that the proxy adds, while and after it is used: in the
// memory, the environments and the files of the plugin and all that it starts, in a core, in all
// that the host keeps and tells, and at other hosts. The controls are that the host and the server
// have it, and that what the program has in its memory is found there.
func TestInjectedSecretIsNowhere(t *testing.T) {
	if !inOwnNetwork(t, "api.example.com", "www.example.com") {
		return
	}
	secret, mark := (rand.Text() + rand.Text())[:40], rand.Text()
	held, release := make(chan struct{}), make(chan struct{})
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			close(held)
			<-release
		}
		_, _ = io.WriteString(w, "hello")
	})
	web := serveSites(t, map[string]http.Handler{"api.example.com": hello, "www.example.com": hello})
	t.Setenv("SSL_CERT_FILE", web.trust)
	t.Setenv("API_SECRET", secret)
	config := writeConfig(t, injecting)
	h := &host{config: config, dir: filepath.Dir(config), stateDir: filepath.Join(filepath.Dir(config), "state"), logLevel: "trace"}
	h.restart(t)
	t.Cleanup(h.stop)
	events := h.listen(t)
	h.write(t, "uses.py", fmt.Sprintf(usesSecret, mark))
	call := h.post(t, "shell_exec", map[string]any{"command": "/usr/bin/python3 uses.py"}, "Prefer", "respond-async").ToolCallID
	<-held

	// while it is used
	pids := below(h.cmd.Process.Pid)
	whole := "mark-of-the-program-" + mark
	marked := 0
	for _, pid := range pids {
		memory, err := memoryHas(pid, secret, whole)
		if err != nil {
			t.Fatalf("process %d: %v", pid, err)
		}
		if memory[secret] {
			t.Errorf("the secret is in the memory of process %d, %q", pid, ofProcess(pid, "cmdline"))
		}
		if memory[whole] {
			marked = pid
		}
		for _, name := range []string{"environ", "cmdline"} {
			if strings.Contains(ofProcess(pid, name), secret) {
				t.Errorf("the secret is in %s of process %d", name, pid)
			}
		}
	}
	if len(pids) < 3 || marked == 0 {
		t.Fatalf("control: the mark is not in the memory of one of %d processes", len(pids))
	}
	if memory, err := memoryHas(h.cmd.Process.Pid, secret); err != nil || !memory[secret] {
		t.Errorf("control: the secret is not in the memory of the host, %v", err)
	}
	looks := h.looks(t, secret)
	looks("while it is used")

	// after the program has crashed, and the host has ended
	if err := syscall.Kill(marked, syscall.SIGABRT); err != nil {
		t.Fatal(err)
	}
	close(release)
	if outcome := asJSON(h.outcome(t, call)); strings.Contains(outcome, secret) || !strings.Contains(outcome, "signal") && !strings.Contains(outcome, "134") {
		t.Errorf("the call ends with %s, want a crash without the secret", outcome)
	}
	looks("after it was used")
	h.stop()
	if text := events(); strings.Contains(text, secret) || !strings.Contains(text, "api.example.com:443") {
		t.Errorf("the events are\n%s", text)
	}
	if text := h.said(); strings.Contains(text, secret) || len(text) == 0 {
		t.Errorf("the log has the secret, or nothing:\n%s", text)
	}
	if files := filesWith(t, h.dir, secret); len(files) > 0 {
		t.Errorf("the secret is in %q", files)
	}

	got, without := web.of("api.example.com"), 0
	for _, r := range got {
		switch header := r.header.Get("Authorization"); {
		case header == "" && r.path == "/":
			without++
		case header != "Bearer "+secret:
			t.Errorf("api.example.com got %+v, want the secret", r)
		}
	}
	if len(got) < 8 || without != 2 { // the one without TLS, and the one that the other host got under this name
		t.Errorf("control: api.example.com got %+v", got)
	}
	others := web.of("www.example.com")
	if len(others) < 6 || strings.Contains(fmt.Sprint(others), secret) {
		t.Errorf("www.example.com got %+v", others)
	}
}

// looks returns a function that looks for a secret in all that the host keeps and answers.
func (h *host) looks(t *testing.T, secret string) func(when string) {
	t.Helper()
	return func(when string) {
		t.Helper()
		if files := filesWith(t, h.dir, secret); len(files) > 0 {
			t.Errorf("%s, the secret is in %q", when, files)
		}
		for _, path := range []string{"/v1/calls", "/v1/tools", "/v1/plugins", "/healthz", "/v1/caller"} {
			if _, text, err := h.send("GET", path, h.token, ""); err != nil || strings.Contains(text, secret) {
				t.Errorf("%s, %s answers %s, %v", when, path, text, err)
			}
		}
		for _, command := range []string{"journal query --json --limit 1000", "network --json", "plugins inspect shell --json", "usage --json", "sandbox learn shell", "doctor", "explain --network shell api.example.com"} {
			stdout, stderr, code := h.cli(strings.Fields(command)...)
			if strings.Contains(stdout+stderr, secret) || code != 0 || stdout == "" {
				t.Errorf("%s, toolhost %s exits with %d and prints\n%s%s", when, command, code, stdout, stderr)
			}
		}
	}
}

// listen reads all events of the host. The result returns their text, after the host has ended.
func (h *host) listen(t *testing.T) (text func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+h.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	var reading sync.WaitGroup
	reading.Go(func() { // ends with the host, or with cancel
		_, _ = io.Copy(&all, response.Body)
	})
	t.Cleanup(func() {
		cancel()
		reading.Wait()
		_ = response.Body.Close()
	})
	return func() string {
		reading.Wait()
		return all.String()
	}
}

// below returns the processes that a process and its children have started.
func below(pid int) (all []int) {
	children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range children {
		text, _ := os.ReadFile(file) // the thread may have ended
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(append(all, child), below(child)...)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func ofProcess(pid int, name string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name)) // it may have ended
	return string(text)
}

// memoryHas reports which of the texts are in the memory of a process.
func memoryHas(pid int, texts ...string) (found map[string]bool, err error) {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	defer maps.Close()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	found, read := map[string]bool{}, 0
	buf := make([]byte, 1<<20)
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to int64
		var rights string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &rights); err != nil || rights[0] != 'r' {
			continue
		}
		kept := 0 // of the part before, for a text across the border
		for at := from; at < to; {
			n, err := memory.ReadAt(buf[kept:kept+int(min(int64(len(buf)-kept), to-at))], at)
			if n == 0 || err != nil && !errors.Is(err, io.EOF) {
				break // not backed by anything
			}
			read += n
			part := buf[:kept+n]
			for _, text := range texts {
				found[text] = found[text] || bytes.Contains(part, []byte(text))
			}
			at += int64(n)
			kept = copy(buf, part[max(0, len(part)-256):])
		}
	}
	if read < 1<<16 {
		return nil, fmt.Errorf("%d bytes of its memory could be read", read)
	}
	return found, nil
}

// filesWith returns the files below a directory that contain a text.
func filesWith(t *testing.T, dir, text string) (names []string) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if seen++; bytes.Contains(content, []byte(text)) {
			names = append(names, path)
		}
		return err
	})
	if err != nil || seen < 5 {
		t.Errorf("%d files were looked at, %v", seen, err)
	}
	return names
}
