package config_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/internal/testprogram"
)

// allows returns a configuration with a list of allowed hosts.
func allows(list string) string {
	return "workspace = \".\"\nplugin \"a\" {\n path = \"/bin/a\"\n tier = \"read_only\"\n sandbox {\n  network {\n   mode = \"proxy\"\n   allow = " + list + "\n  }\n }\n}\n"
}

// TestRegistry: the hosts of a client are those of its variable, else of the user's settings, else what
// the client answers.
func TestRegistry(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, list string
		env        map[string]string
		files      map[string]string // below HOME
		programs   map[string]string // what they print
		want       string            // the hosts, or a mistake
	}{
		{
			name: "variables before files before programs", list: `[registry("npm"), registry("go"), registry("pip"), "example.com"]`,
			env:      map[string]string{"GOPROXY": "https://go.example.com|https://second.example.com:8443/x,direct"},
			files:    map[string]string{".npmrc": "//npm.example.com/:_authToken=secret\nregistry = https://user:secret@npm.example.com/npm/\n", ".config/go/env": "GOPROXY=https://other.example.com\n"},
			programs: map[string]string{"npm": "https://other.example.com/", "pip": "  -i, --index-url <url>  Base URL (default https://pip.example.com/simple). This"},
			want:     "npm.example.com go.example.com second.example.com:8443 pip.example.com example.com",
		},
		{
			name: "registries of scopes, and the client's own", list: `registry("npm")`,
			files:    map[string]string{".npmrc": "@mine:registry=http://mine.example.com:80/\n@a:registry=https://[2001:db8::1]/\n"},
			programs: map[string]string{"npm": "\nhttps://npm.example.com/"},
			want:     "npm.example.com mine.example.com [2001:db8::1]",
		},
		{
			name: "further indexes", list: `[registry("pip")]`,
			files: map[string]string{".config/pip/pip.conf": "[global]\nextra-index-url = https://b.example.com/simple\nindex-url: https://a.example.com/simple\n"},
			want:  "a.example.com b.example.com",
		},
		{name: "files of variables", list: `registry("go")`, env: map[string]string{"XDG_CONFIG_HOME": "HOME/elsewhere"}, files: map[string]string{"elsewhere/go/env": "GOPROXY=https://go.example.com\n"}, want: "go.example.com"},
		{name: "a settings file of npm by a variable", list: `registry("npm")`, env: map[string]string{"NPM_CONFIG_USERCONFIG": "HOME/mine"}, files: map[string]string{"mine": "registry=https://a.example.com\n", ".npmrc": "registry=https://b.example.com\n"}, want: "a.example.com"},
		{name: "in locals", list: `concat(registry("go"), ["b.example.com"])`, env: map[string]string{"GOPROXY": "https://go.example.com"}, want: "go.example.com b.example.com"},
		{name: "the same twice", list: `[registry("go"), "go.example.com"]`, env: map[string]string{"GOPROXY": "https://go.example.com"}, want: "Duplicate destination"},
		{name: "unknown", list: `[registry("nmp")]`, want: `there is no client "nmp", expected "go", "npm" or "pip"`},
		{name: "no program", list: `[registry("npm")]`, want: "there is no setting, and no program npm in PATH that only root and the user of the host can change; set npm_config_registry, or registry in ~/.npmrc, or write the host instead"},
		{name: "no URL", list: `[registry("go")]`, env: map[string]string{"GOPROXY": "off"}, want: "the variable GOPROXY has no URL of a registry; set GOPROXY to the URL of a module proxy"},
		{name: "a program prints nothing", list: `[registry("go")]`, programs: map[string]string{"go": "two words"}, want: "go env GOPROXY prints no registry"},
		{name: "a program fails", list: `[registry("go")]`, programs: map[string]string{"go": "!"}, want: "the program go env GOPROXY ended with exit status 3"},
		{name: "a file that is none", list: `[registry("npm")]`, files: map[string]string{".npmrc/x": ""}, want: "not a regular file"},
		{name: "no host", list: `[registry("go")]`, env: map[string]string{"GOPROXY": "https://127.1/"}, want: "Not a destination"},
		{name: "a password is not shown", list: `[registry("go")]`, env: map[string]string{"GOPROXY": "ftp://user:secret@example.com/"}, want: "GOPROXY has no URL of a registry"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			home, bin := t.TempDir(), t.TempDir()
			for _, dir := range []string{home, bin} {
				if err := os.Chmod(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range tt.files {
				path := filepath.Join(home, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for name, prints := range tt.programs {
				script := fmt.Sprintf("#!/bin/sh\ntest \"$PWD\" = / && test -z \"$OF_THE_HOST\" || exit 4\ncat <<'END'\n%s\nEND\n", prints)
				if prints == "!" {
					script = "#!/bin/sh\nexit 3\n"
				}
				if err := testprogram.Write(filepath.Join(bin, name), strings.NewReader(script)); err != nil {
					t.Fatal(err)
				}
			}
			env := map[string]string{"HOME": home, "PATH": "relative:" + bin + ":/bin", "OF_THE_HOST": "x"}
			if len(tt.programs) == 0 {
				env["PATH"] = bin
			}
			for name, value := range tt.env {
				env[name] = strings.ReplaceAll(value, "HOME", home)
			}
			cfg, err := config.Load(write(t, map[string]string{"config.hcl": allows(tt.list)}), config.LoadOptions{LookupEnv: environment(env)})
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
					t.Errorf("Load = %v, want %q", err, tt.want)
				}
				return
			}
			if got := hostsOfAllow(cfg); got != tt.want {
				t.Errorf("allow = %s, want %s", got, tt.want)
			}
			for name := range tt.files {
				if path := filepath.Join(home, name); strings.Contains(tt.want, "npm.example.com") && name == ".npmrc" && !slices.Contains(cfg.Protected, path) {
					t.Errorf("%s decides which hosts are allowed, and is not protected: %q", path, cfg.Protected)
				}
			}
		})
	}
}

func hostsOfAllow(cfg *config.Config) string {
	var hosts []string
	for _, to := range cfg.Plugins[0].Supervisor.Network.Allow {
		hosts = append(hosts, to.String())
	}
	return strings.Join(hosts, " ")
}

// TestRegistryOfClients asks the real clients without any setting: each has a registry of its own.
func TestRegistryOfClients(t *testing.T) {
	t.Parallel()
	for client, program := range map[string]string{"go": "go", "npm": "npm", "pip": "pip"} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(program); err != nil {
				if os.Getenv("CI") != "" {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			env := map[string]string{"HOME": quietHome(t), "PATH": os.Getenv("PATH")}
			cfg, err := config.Load(write(t, map[string]string{"config.hcl": allows(`registry("` + client + `")`)}), config.LoadOptions{LookupEnv: environment(env)})
			if err != nil || strings.Count(hostsOfAllow(cfg), ".") < 1 {
				t.Errorf("Load = %v", err)
			}
		})
	}
}

// quietHome returns a home directory in which go leaves no process behind that writes its telemetry.
func quietHome(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	telemetry := filepath.Join(home, ".config/go/telemetry")
	if err := os.MkdirAll(telemetry, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(telemetry, "mode"), []byte("off"), 0o644); err != nil {
		t.Fatal(err)
	}
	return home
}
