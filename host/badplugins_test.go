package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBadPluginsAreExplained enables files that cannot be plugins, each beside a good one, and
// reads how the list explains them.
func TestBadPluginsAreExplained(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile(filepath.Join(bin, "plugins", "hello"))
	if err != nil {
		t.Fatal(err)
	}
	otherMachine := append([]byte{}, good...)
	otherMachine[18], otherMachine[19] = 183, 0 // e_machine: aarch64
	if good[18] == 183 {
		otherMachine[18] = 62 // x86-64
	}
	for _, tt := range []struct {
		name    string
		content []byte // nil means no file
		mode    os.FileMode
		want    string
	}{
		{"missing", nil, 0, "build it, or correct path"},
		{"not-executable", good, 0o600, "chmod"},
		{"group-writable", good, 0o770, "chmod go-w"},
		{"writable-by-all", good, 0o707, "chmod go-w"},
		{"other-machine", otherMachine, 0o700, "wrong architecture"},
		{"text", []byte("hello\n"), 0o700, "not an executable for this machine"},
		{"no-interpreter", []byte("#!/no/such/shell\n"), 0o700, "/no/such/shell"},
		{"not-a-plugin", []byte("#!/bin/sh\nexit 0\n"), 0o700, "exited with code 0 its handshake"},
		{"fails", []byte("#!/bin/sh\necho cannot find my files >&2\nexit 3\n"), 0o700, "cannot find my files"},
		{"prints-first", []byte("#!/bin/sh\necho hello there\nexec /bin/sleep 600\n"), 0o700, "hello there"},
		{"kills-itself", []byte("#!/bin/sh\nkill -9 $$\nexit 3\n"), 0o700, "exited with code 3"}, // process 1 of a namespace cannot
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), tt.name)
			if tt.content != nil {
				if err := os.WriteFile(path, tt.content, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(path, tt.mode); err != nil { // independent of the umask
					t.Fatal(err)
				}
			}
			config := writeConfig(t, `
plugin "bad" {
  path = "`+path+`"
  tier = "read_only"
}

plugin "hello" {
  path   = "hello"
  tier   = "read_only"
  claims = "trust"
}
`)
			out, err := toolhost(t.Context(), config, "plugins", "list", "--json").Output()
			if err != nil {
				t.Fatal(err)
			}
			var plugins []struct {
				Name      string
				Phase     string
				Refused   string
				LastCrash struct{ Cause, During, Detail string } `json:"last_crash"`
			}
			if err := json.Unmarshal(out, &plugins); err != nil || len(plugins) != 2 {
				t.Fatalf("plugins list --json: %v\n%s", err, out)
			}
			bad, hello := plugins[0], plugins[1]
			if said := strings.Join([]string{bad.Refused, bad.LastCrash.Cause, bad.LastCrash.During, bad.LastCrash.Detail}, " "); !strings.Contains(said, tt.want) {
				t.Errorf("the list says %q (%s), want it to contain %q", said, bad.Phase, tt.want)
			}
			if hello.Phase != "ready" {
				t.Errorf("the good plugin is %s, want ready", hello.Phase)
			}
			out, err = toolhost(t.Context(), config, "call", "hello", "name=Ada").Output()
			if err != nil || !strings.Contains(string(out), "Ada") {
				t.Errorf("a call of the good plugin = %q, %v", out, err)
			}
		})
	}
}
