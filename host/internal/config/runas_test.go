package config

import (
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

// TestRunAs: which users plugins may run as, by who the host is.
func TestRunAs(t *testing.T) {
	root, err := user.LookupId("0")
	if err != nil {
		t.Fatal(err)
	}
	asRoot := sandbox.RunAs{Mode: sandbox.RunAsUser}
	asAda := sandbox.RunAs{Mode: sandbox.RunAsUser, UID: 1234, GID: 5678}
	for _, tt := range []struct {
		name  string
		host  account
		lines string
		want  sandbox.RunAs
		// mistake is the expected message, "" if the user is allowed.
		mistake string
	}{
		{"nothing", account{}, ``, sandbox.RunAs{}, ""},
		{"auto", account{}, `run_as = "auto"`, sandbox.RunAs{}, ""},
		{"host", account{}, `run_as = "host"`, sandbox.RunAs{Mode: sandbox.RunAsHost}, ""},
		{"a name", account{}, `run_as = "` + root.Username + `"`, asRoot, ""},
		{"a number", account{}, `run_as = "0"`, asRoot, ""},
		{"numbers", account{}, `run_as = "1234:5678"`, asAda, ""},
		{"no name", account{}, `run_as = ""`, asAda, "Unknown user"},
		{"a group alone", account{}, `run_as = ":5678"`, asAda, "Unknown user"},
		{"too large", account{}, `run_as = "1234:4294967296"`, asAda, "Unknown user"},

		{"auto, not root", account{1234, 5678}, `run_as = "auto"`, sandbox.RunAs{}, ""},
		{"host, not root", account{1234, 5678}, `run_as = "host"`, sandbox.RunAs{Mode: sandbox.RunAsHost}, ""},
		{"itself, not root", account{1234, 5678}, `run_as = "1234:5678"`, asAda, ""},
		{"another user, not root", account{4321, 5678}, `run_as = "1234:5678"`, asAda, "Another user than the host's"},
		{"another group, not root", account{1234, 8765}, `run_as = "1234:5678"`, asAda, "Another user than the host's"},
		{"root by name, not root", account{1234, 5678}, `run_as = "` + root.Username + `"`, asRoot, "Another user than the host's"},

		{"root and a layer that is not", account{}, "require = [\"run_as\"]\nrun_as = \"host\"", asRoot, "Impossible layer"},
		{"root by number and a layer that is not", account{}, "require = [\"run_as\"]\nrun_as = \"0:0\"", asRoot, "Impossible layer"},
		{"the layer with another user", account{}, "require = [\"run_as\"]\nrun_as = \"1234:5678\"", asAda, ""},
		{"the layer without root", account{1234, 5678}, "require = [\"run_as\"]\nrun_as = \"host\"", sandbox.RunAs{Mode: sandbox.RunAsHost}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := "workspace = \".\"\nstate_dir = \"/var/tmp/toolhost-test-state\"\nplugin \"p\" {\n tier = \"read_only\"\n sandbox {\n" + tt.lines + "\n}\n}\n"
			dir := t.TempDir()
			d := newDecoder(&source{
				path: filepath.Join(dir, "config.hcl"), dir: dir, files: []sourceFile{{name: "config.hcl", bytes: []byte(text)}},
			}, LoadOptions{LookupEnv: lookup(nil)})
			d.host = tt.host
			bodies, _ := d.parse()
			cfg := d.decode(bodies)
			switch err := d.error(); {
			case tt.mistake != "":
				if err == nil || !strings.Contains(err.Error(), tt.mistake) {
					t.Errorf("%s: error %v, want %q", tt.lines, err, tt.mistake)
				}
			case err != nil:
				t.Errorf("%s: %v", tt.lines, err)
			case cfg.Plugins[0].Supervisor.Confinement.RunAs != tt.want:
				t.Errorf("%s: %+v, want %+v", tt.lines, cfg.Plugins[0].Supervisor.Confinement.RunAs, tt.want)
			}
		})
	}
}
