package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// victim is what the malicious server aims at.
type victim struct {
	Key     string `json:"key"`
	Home    string `json:"home"`
	State   string `json:"state"`
	Outside string `json:"outside"`
	Config  string `json:"config"`
	Socket  string `json:"socket"`
	HTTP    int    `json:"http"`
	UDP     int    `json:"udp"`
	Marker  string `json:"marker"`

	requests, packets *atomic.Int64
}

func newVictim(t *testing.T, dir, marker string) victim {
	t.Helper()
	v := victim{
		Home: filepath.Join(dir, "home"), Key: filepath.Join(dir, "home/.ssh/id_ed25519"), Outside: filepath.Join(dir, "home/pwned"),
		State: filepath.Join(dir, "state/approver.key"), Config: filepath.Join(dir, "config.hcl"), Socket: filepath.Join(dir, "state/control.sock"),
		Marker: marker, requests: new(atomic.Int64), packets: new(atomic.Int64),
	}
	if err := os.MkdirAll(filepath.Dir(v.Key), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(v.Key, []byte("the private key"), 0o644); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { v.requests.Add(1) }))
	t.Cleanup(server.Close)
	v.HTTP = server.Listener.Addr().(*net.TCPAddr).Port
	udp, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = udp.Close() })
	v.UDP = udp.LocalAddr().(*net.UDPAddr).Port
	go func() { // ends with the socket
		for buffer := make([]byte, 100); ; v.packets.Add(1) {
			if _, _, err := udp.ReadFrom(buffer); err != nil {
				return
			}
		}
	}()
	return v
}

func (v victim) argument(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestMaliciousMCPServer: what a server tries against the machine fails in its sandbox, although an
// administrator has accepted its tools, and works for the same server alone.
func TestMaliciousMCPServer(t *testing.T) {
	t.Parallel()
	node, _ := peerProgram(t, "node")
	node, err := filepath.EvalSymlinks(node)
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("testdata/mcp/malicious.js")
	if err != nil {
		t.Fatal(err)
	}
	const canary = "canary-of-the-host"

	aloneDir := t.TempDir()
	alone := newVictim(t, aloneDir, "marker-alone-"+filepath.Base(aloneDir))
	if err := os.MkdirAll(filepath.Dir(alone.State), 0o700); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(aloneDir, "malicious.js")
	for path, text := range map[string]string{script: string(code), alone.State: "the approver's key", alone.Config: ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), node, script, alone.argument(t))
	command.Env = append(os.Environ(), "CANARY="+canary)
	control := connectTo(t, command, "2025-11-25", nil)

	config := writeConfig(t, "policy { mode = \"autonomous\" }\nserver { listen = \"\" }\n")
	dir := filepath.Dir(config)
	aim := newVictim(t, dir, "marker-confined-"+filepath.Base(filepath.Dir(dir)))
	own := filepath.Join(dir, "server")
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(own, "malicious.js"), code, 0o644); err != nil {
		t.Fatal(err)
	}
	toolhostWith := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(bin, "toolhost"), append([]string{"--config", config}, args...)...)
		cmd.Env = append(os.Environ(), "CANARY="+canary)
		return cmd
	}
	for _, args := range [][]string{
		{"mcp", "add", "--yes", "--name", "evil", "--allow", "weather.example", "--ask=false", "--", node, filepath.Join(own, "malicious.js"), aim.argument(t)},
		{"plugins", "accept", "evil", "--yes"},
	} {
		if out, err := toolhostWith(args...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	confined := connectTo(t, toolhostWith("mcp"), "2025-11-25", nil)

	for _, tt := range []struct{ attack, works string }{
		{"read_key", "the private key"},
		{"read_state", "key"},
		{"list_homes", ".ssh"},
		{"write_outside", "done"},
		{"change_itself", "done"},
		{"change_config", "done"},
		{"environment", canary},
		{"processes", alone.Marker}, // of the server alone
		{"send_http", "status 200"},
		{"send_dns", "sent"},
		{"survive", "left"},
	} {
		alone, failed := control.call(t.Context(), t, tt.attack, nil)
		if failed || !strings.Contains(alone, tt.works) {
			t.Errorf("control: %s alone gets %q, want %q: the test shows nothing", tt.attack, alone, tt.works)
		}
		got, _ := confined.call(t.Context(), t, "evil_"+tt.attack, nil)
		switch tt.attack {
		case "send_dns", "survive": // what matters is what arrives, and what is left
		default:
			if strings.Contains(got, tt.works) {
				t.Errorf("%s in the sandbox gets %q", tt.attack, got)
			}
		}
	}
	for _, attack := range []string{"send_by_proxy", "control_socket"} {
		if got, _ := confined.call(t.Context(), t, "evil_"+attack, nil); strings.Contains(got, "status 200") || strings.Contains(got, "connected") {
			t.Errorf("%s in the sandbox gets %q", attack, got)
		}
	}
	if alone.requests.Load() == 0 || alone.packets.Load() == 0 {
		t.Errorf("control: %d requests and %d packets of the server alone arrived", alone.requests.Load(), alone.packets.Load())
	}
	if n := aim.requests.Load() + aim.packets.Load(); n > 0 {
		t.Errorf("%d messages of the confined server left the sandbox", n)
	}
	if _, err := os.Stat(aim.Outside); err == nil {
		t.Error("the server has written outside of the workspace")
	}
	if !markerRuns(t, alone.Marker) || !markerRuns(t, aim.Marker) {
		t.Error("control: what the servers left behind does not run")
	}
	for tool, err := range confined.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(tool.Description, "\u200b\u202e\u202c\x1b") {
			t.Errorf("the description of %s has hidden characters: %q", tool.Name, tool.Description)
		}
	}
	_ = confined.Close()
	_ = control.Close()
	endMarked(t, alone.Marker)
	if markerRuns(t, aim.Marker) {
		t.Error("a process of the server has survived its host")
	}
}

// TestForgedConfiguration: a server that may write to the directory of the configuration adds a plugin to
// the file whenever the kernel lets it. The edits that an administrator makes with commands meanwhile
// never apply what it wrote.
func TestForgedConfiguration(t *testing.T) {
	t.Parallel()
	node, _ := peerProgram(t, "node")
	node, err := filepath.EvalSymlinks(node)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	work := filepath.Join(dir, "ws")
	config, script := filepath.Join(work, "config.hcl"), filepath.Join(work, "server", "malicious.js")
	if err := os.MkdirAll(filepath.Dir(script), 0o755); err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("testdata/mcp/malicious.js")
	if err != nil {
		t.Fatal(err)
	}
	text := "workspace = \".\"\nstate_dir = \"../state\"\nplugin_dir = \"" + filepath.Join(bin, "plugins") + "\"\n" +
		"server { listen = \"127.0.0.1:0\" }\npolicy { mode = \"autonomous\" }\n"
	for path, text := range map[string]string{script: string(code), config: text} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	aim, err := json.Marshal(map[string]string{"config": config, "forged": "\nplugin \"forged\" {\n  path = \"fs\"\n  roots = [\"/\"]\n}\n"})
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string) (string, error) {
		args := []string{"--config", config, "mcp", "add", "--yes", "--name", name, "--workspace", "rw", "--ask=false", "--", node, script, string(aim)}
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "toolhost"), args...).CombinedOutput()
		return string(out), err
	}
	if out, err := add("evil"); err != nil {
		t.Fatal(out)
	}
	h := &host{config: config, dir: dir, stateDir: filepath.Join(dir, "state")}
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.stop)
	h.ok(t, "plugins", "accept", "evil", "--yes")
	forged := func() bool {
		var plugins []struct{ Name string }
		decode(t, h.ok(t, "plugins", "list", "--json"), &plugins)
		return slices.ContainsFunc(plugins, func(p struct{ Name string }) bool { return p.Name == "forged" })
	}
	wrote := false
	for i := range 4 {
		h.ok(t, "call", "evil_forge_config")
		if out, err := add(fmt.Sprintf("other%d", i)); forged() {
			t.Fatalf("mcp add (%v) applies what the server wrote: %s", err, out)
		}
		now, err := os.ReadFile(config)
		if err != nil {
			t.Fatal(err)
		}
		if wrote = wrote || strings.Contains(string(now), "plugin \"forged\""); !wrote {
			continue
		}
		if out, err := add("later"); err == nil || forged() {
			t.Fatalf("the next mcp add: %v: %s", err, out)
		}
		break
	}
	h.ok(t, "plugins", "list") // it serves on
	t.Logf("the server got its text into the file: %v", wrote)
}

// markerRuns reports whether a process has a marker in its command line.
func markerRuns(t *testing.T, marker string) bool {
	t.Helper()
	return len(withMarker(t, marker)) > 0
}

// withMarker returns the directories of the processes that have a marker as an argument of their own.
func withMarker(t *testing.T, marker string) (found []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err == nil && strings.HasSuffix(string(text), "\x00"+marker+"\x00") {
			found = append(found, filepath.Dir(path))
		}
	}
	return found
}

// endMarked kills the processes with a marker, which the test has started.
func endMarked(t *testing.T, marker string) {
	t.Helper()
	for _, dir := range withMarker(t, marker) {
		if err := exec.CommandContext(t.Context(), "kill", "-9", filepath.Base(dir)).Run(); err != nil {
			t.Errorf("end a process of the control: %v", err)
		}
	}
}
