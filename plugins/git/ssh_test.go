package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// By ssh, git runs the program of the settings, with nothing of the repository's.
func TestSSH(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.git("", "clone", "-q", "--bare", "r", "up.git")
	w.git("r", "remote", "add", "origin", "git@127.0.0.1:"+w.dir+"/up.git")
	w.git("r", "config", "core.sshCommand", "touch "+w.scratch+"/mark; false")
	ssh, said := filepath.Join(w.scratch, "an ssh"), filepath.Join(w.scratch, "said")
	// Replaces a remote: it runs here what it is told to run there.
	if err := os.WriteFile(ssh, []byte("#!/bin/sh\nprintf '%s\\n' \"$@\" > '"+said+"'\nfor last; do :; done\neval \"$last\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.start(started{layers: layers{noRules: true}, settings: map[string]any{
		"protocols": []string{"ssh"}, "ssh": map[string]any{"program": ssh, "key": "/keys/a key", "known_hosts": "/keys/hosts"},
	}})
	contains(t, w.must("git_fetch", args{"path": "r"}), "new refs/remotes/origin/main")
	text, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(text), "-F\n/dev/null\n", "BatchMode=yes\n", "StrictHostKeyChecking=yes\n", "UserKnownHostsFile=/keys/hosts\n", "-i\n/keys/a key\n", "git@127.0.0.1\n")
	if _, err := os.Stat(filepath.Join(w.scratch, "mark")); err == nil {
		t.Error("core.sshCommand was run")
	}
	// Under the rules, ssh can run nothing else; and a host that is not known is named
	// as such.
	other := filepath.Join(w.scratch, "other")
	script := "#!/bin/sh\n/usr/bin/env true 2>/dev/null && echo ran another program >&2 || echo Host key verification failed. >&2\nexit 255\n"
	if err := os.WriteFile(other, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	settings := map[string]any{"protocols": []string{"ssh"}, "ssh": map[string]any{"program": other}}
	w.start(started{settings: settings})
	contains(t, w.refused("git_fetch", args{"path": "r"}, tool.PermissionDenied), "Host key verification failed", "ssh.known_hosts")
	w.start(started{layers: layers{noRules: true}, settings: settings})
	contains(t, w.refused("git_fetch", args{"path": "r"}, tool.Failed), "ran another program")
}
