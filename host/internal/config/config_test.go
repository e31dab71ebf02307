package config_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/plugin/workspace"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A umask that lets the group write would make every configuration of these
// tests one to refuse.
func TestMain(m *testing.M) {
	syscall.Umask(0o022)
	os.Exit(m.Run())
}

// settingsSchema is the settings schema of the tests' plugins.
const settingsSchema = `{
	"type": "object",
	"properties": {
		"max_read": {"type": "integer", "x-unit": "bytes", "minimum": 1024, "maximum": 1073741824, "default": 1048576},
		"patience": {"type": "integer", "x-unit": "duration", "minimum": 1000000},
		"mode":     {"type": "string", "enum": ["text", "binary"], "default": "text"},
		"hidden":   {"type": "boolean"},
		"depth":    {"type": "integer", "minimum": 1, "maximum": 64},
		"ratio":    {"type": "number"},
		"skip":     {"type": "array", "items": {"type": "string"}},
		"labels":   {"type": "object", "additionalProperties": {"type": "string"}},
		"cache":    {"type": "object", "additionalProperties": false, "required": ["dir"], "properties": {
			"dir": {"type": "string"}, "size": {"type": "integer", "x-unit": "bytes"}}},
		"root":     {"type": "array", "items": {"type": "object", "additionalProperties": false, "required": ["path"], "properties": {
			"path": {"type": "string"}, "writable": {"type": "boolean"}}}}
	},
	"additionalProperties": false
}`

// environment is a fake environment with a home outside of every workspace.
func environment(more map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if value, set := more[name]; set {
			return value, true
		}
		if name == "XDG_STATE_HOME" {
			return "/var/tmp/toolhost-test-state", true
		}
		return "", false
	}
}

// write makes a configuration directory and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestMistakes loads each folder of testdata/mistakes and compares the report.
func TestMistakes(t *testing.T) {
	dirs, err := filepath.Glob("testdata/mistakes/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no folders in testdata/mistakes: %v", err)
	}
	source, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(copied(t, dirs))
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			_, err := config.Load(dir, config.LoadOptions{
				LookupEnv: environment(map[string]string{"API_KEY": "s3cr3t-value", "PIN": "77"}),
				SettingsSchema: func(string, supervisor.Plugin) ([]byte, bool) {
					return []byte(settingsSchema), true
				},
			})
			var bad *config.Error
			if !errors.As(err, &bad) {
				t.Fatalf("Load(%s) error = %v, want *config.Error", dir, err)
			}
			var got bytes.Buffer
			if err := bad.WriteText(&got, false); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join(source, dir, "want.txt")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("report of %s (-want +got):\n%s", dir, diff)
			}
			if strings.Contains(got.String(), "s3cr3t") {
				t.Errorf("report of %s shows a secret:\n%s", dir, got.String())
			}
		})
	}
}

// copied returns a directory with copies of folders, owned by the user of the test even if
// another user checked out the originals.
func copied(t *testing.T, dirs []string) string {
	t.Helper()
	to := t.TempDir()
	for _, dir := range dirs {
		if err := os.CopyFS(filepath.Join(to, dir), os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func TestLoad(t *testing.T) {
	dir := write(t, map[string]string{
		"10-host.hcl": `
			workspace  = "../work"
			plugin_dir = "plugins"
			state_dir  = "state"
			server {
				listen = "localhost:0"
			}
			auth {
				local_user = "ada"
				token "ci-agent" {
					sha256 = "` + strings.Repeat("1b", 32) + `"
					expires = "2999-01-01"
					account = "any"
					user   = "ci"
					roles  = ["agent"]
				}
				token "bea" {
					sha256   = "` + strings.Repeat("2c", 32) + `"
					user     = "bea"
					roles    = ["admin", "approver"]
					approves = ["ci", "ada"]
				}
			}
			policy {
				mode             = "autonomous"
				actions_per_hour = 77
			}
			approvals {
				timeout  = "1d"
				patience = "9s"
			}
			results {
				ttl   = "2h"
				quota = "77MiB"
			}
			journal {
				keep     = "30d12h"
				max_size = "3GiB"
			}
			sandbox "small" {
				isolation  = "strict"
				require    = ["netns", "seccomp"]
				on_missing = "warn"
				run_as     = "host"
				limits {
					tmp_size      = "77MiB"
					memory        = "193MiB"
					open_files    = 111
					processes     = 77
					file_size     = "3MiB"
					stack         = "5MiB"
					core          = "4KiB"
					cpu_time      = "33s"
					cpus          = 1.5
					address_space = "5GiB"
				}
				filesystem {
					workspace = "ro"
					read      = ["data/../shared", "/usr/share/zoneinfo"]
					write     = ["../beside"]
					exec      = ["workspace", "system", "./tools", "/opt/git/bin", "tmp"]
					protect   = ["agents", ".git/hooks", "./.git/config/"]
				}
				network {
					mode = "none"
				}
				env { 
					pass = ["LANG", "TZ"] 
				}
			}`,
		"20-plugins.hcl": `
			locals {
				program = "${local.family}-plugin"
				family  = env("FAMILY")
			}
			plugin "fs" {
				path         = local.program
				sha256       = "` + strings.Repeat("0a", 32) + `"
				tier         = "privileged"
				claims       = "trust"
				sandbox      = "small"
				start        = "eager"
				idle_timeout = "90s"
				approval {
					read_only      = "allow"
					side_effecting = "ask"
					privileged     = "deny"
				}
				tool "read_file" {
					tier       = "read_only"
					timeout    = "10s"
					max_output = "16KiB"
					rate       = "30/m"
					aliases    = ["cat"]
				}
				tool "write_file" {
					enabled = false
				}
				tool "delete_file" {
					approval       = "confirm"
					allow_standing = true
				}
			}
			plugin "hello" {
				enabled = false
				tier    = "read_only"
				path    = "/opt/hello"
				sandbox {
					limits {
						memory = "unlimited"
					}
				}
			}`,
		"notes.txt":   "not read",
		".hidden.hcl": "not read either {",
	})
	work := filepath.Join(filepath.Dir(dir), "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	got, err := config.Load(dir, config.LoadOptions{LookupEnv: environment(map[string]string{"FAMILY": "files"})})
	if err != nil {
		t.Fatal(err)
	}
	protected := slices.Sorted(slices.Values([]string{
		dir,
		filepath.Join(dir, "10-host.hcl"), filepath.Join(dir, "20-plugins.hcl"), filepath.Join(dir, "config.lock.json"),
		filepath.Join(dir, "plugins"), filepath.Join(dir, "plugins/files-plugin"), "/opt/hello",
		self,
	}))
	hello := sandbox.DefaultLimits()
	hello.Memory = 0
	want := &config.Config{
		Path:       dir,
		Lock:       filepath.Join(dir, "config.lock.json"),
		StateNamed: true,
		Workspace:  workspace.Dirs{Shared: work},
		PluginDir:  filepath.Join(dir, "plugins"),
		StateDir:   filepath.Join(dir, "state"),
		Listen:     "127.0.0.1:0",
		Grace:      10 * time.Second,

		ToolSearchAbove: 100,

		LocalUser: "ada",
		Tokens: []auth.Token{
			{Name: "ci-agent", SHA256: strings.Repeat("1b", 32), User: "ci", Roles: auth.Agent, Expires: time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC), Account: auth.Account{Name: auth.AnyAccount}},
			{Name: "bea", SHA256: strings.Repeat("2c", 32), User: "bea", Roles: auth.Approver | auth.Admin, Approves: []string{"ci", "ada"}},
		},
		Policy: policy.Options{
			Mode:      policy.Autonomous,
			ModePlace: filepath.Join(dir, "10-host.hcl") + ":25",
			Protect:   map[string][]string{"fs": {"agents"}},
			Reach:     map[string][]string{"fs": {filepath.Join(dir, "shared"), filepath.Join(filepath.Dir(dir), "beside"), "/usr/share/zoneinfo"}},
			Plugins: map[string]policy.Plugin{"fs": {
				Tiers: map[tool.Tier]policy.Level{
					tool.ReadOnly:      {Verdict: policy.Allow, Place: filepath.Join(dir, "20-plugins.hcl") + ":15"},
					tool.SideEffecting: {Verdict: policy.Ask, Place: filepath.Join(dir, "20-plugins.hcl") + ":16"},
					tool.Privileged:    {Verdict: policy.Deny, Place: filepath.Join(dir, "20-plugins.hcl") + ":17"},
				},
				Tools: map[string]policy.Level{
					"delete_file": {Verdict: policy.Confirm, AllowStanding: true, Place: filepath.Join(dir, "20-plugins.hcl") + ":30"},
				},
			}},
			Hidden:    []string{filepath.Join(dir, "state")},
			Protected: slices.Sorted(slices.Values(append([]string{filepath.Join(dir, "state")}, protected...))),
		},
		ActionsPerHour: 77,
		Approvals:      config.Approvals{Timeout: 24 * time.Hour, Patience: 9 * time.Second},
		Results:        config.Results{TTL: 2 * time.Hour, Quota: 77 * tool.MiB},
		Journal:        config.Journal{Keep: (30*24 + 12) * time.Hour, MaxSize: 3 * tool.GiB},
		Plugins: []config.Plugin{
			{
				Supervisor: supervisor.Plugin{
					Name:   "fs",
					Path:   filepath.Join(dir, "plugins/files-plugin"),
					SHA256: strings.Repeat("0a", 32),
					Limits: sandbox.Limits{
						Memory: 193 * tool.MiB, OpenFiles: 111, Processes: 77, FileSize: 3 * tool.MiB, Stack: 5 * tool.MiB,
						Core: 4 * tool.KiB, CPUTime: 33 * time.Second, CPUs: 1.5, AddressSpace: 5 * tool.GiB,
					},
					Confinement: sandbox.Confinement{
						Isolation:     sandbox.Strict,
						Require:       []sandbox.Layer{sandbox.LayerNetNS, sandbox.LayerSeccomp},
						WarnOnMissing: true,
						RunAs:         sandbox.RunAs{Mode: sandbox.RunAsHost},
						Workspace:     sandbox.ReadWorkspace,
						Read:          []string{filepath.Join(dir, "shared"), "/usr/share/zoneinfo"},
						Write:         []string{filepath.Join(filepath.Dir(dir), "beside")},
						Exec:          []string{sandbox.ExecWorkspace, sandbox.ExecSystem, filepath.Join(dir, "tools"), "/opt/git/bin", sandbox.ExecTmp},
						Protect:       []string{".git/hooks", ".git/config"},
						Presets:       []string{"agents"},
						TmpSize:       77 * tool.MiB,
					},
					PassEnv:     []string{"LANG", "TZ"},
					Eager:       true,
					IdleTimeout: 90 * time.Second,
				},
				Catalog: catalog.Plugin{
					Name: "fs", Ceiling: tool.Privileged, TrustClaims: true,
					Tools: []catalog.ToolOptions{
						{Name: "read_file", Place: filepath.Join(dir, "20-plugins.hcl") + ":19", Tier: tool.ReadOnly, Timeout: 10 * time.Second, MaxOutput: 16 * tool.KiB, Rate: catalog.Rate{Calls: 30, Per: time.Minute}, Aliases: []string{"cat"}},
						{Name: "write_file", Place: filepath.Join(dir, "20-plugins.hcl") + ":26", Disabled: true},
						{Name: "delete_file", Place: filepath.Join(dir, "20-plugins.hcl") + ":29"},
					},
				},
				Enabled: true,
				Place:   filepath.Join(dir, "20-plugins.hcl") + ":6", TierPlace: filepath.Join(dir, "20-plugins.hcl") + ":9",
			},
			{
				Supervisor: supervisor.Plugin{Name: "hello", Path: "/opt/hello", Limits: hello, Confinement: sandbox.DefaultConfinement()},
				Catalog:    catalog.Plugin{Name: "hello", Ceiling: tool.ReadOnly},
				Place:      filepath.Join(dir, "20-plugins.hcl") + ":34", TierPlace: filepath.Join(dir, "20-plugins.hcl") + ":36",
			},
		},
		Hidden:    []string{filepath.Join(dir, "state")},
		Protected: protected,
		Files:     []string{filepath.Join(dir, "10-host.hcl"), filepath.Join(dir, "20-plugins.hcl")},
		Sources:   []string{filepath.Join(dir, "10-host.hcl"), filepath.Join(dir, "20-plugins.hcl")},
		Digest:    got.Digest,   // see TestDigest
		Contents:  got.Contents, // see TestContents
		Secrets:   []string{"files"},
		Warnings:  got.Warnings, // see TestWarnings
	}
	ignore := cmp.FilterPath(func(p cmp.Path) bool {
		name := p.Last().String()
		return name == ".Settings" || name == ".Locate" || name == ".later"
	}, cmp.Ignore())
	for i := range want.Plugins { // each is reported
		want.Plugins[i].Supervisor.Protected = protected
	}
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
}

// TestShippedConfiguration: the repository's configurations have no mistakes.
func TestShippedConfiguration(t *testing.T) {
	shipped, err := os.ReadFile("../../../config.hcl")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(write(t, map[string]string{"config.hcl": string(shipped)}), "config.hcl")
	cfg, err := config.Load(path, config.LoadOptions{LookupEnv: environment(nil)})
	if err != nil {
		t.Fatal(err)
	}
	limits, confinement := sandbox.DefaultLimits(), sandbox.DefaultConfinement()
	limits.Memory, confinement.Read = tool.GiB, []string{"/proc"}
	if len(cfg.Plugins) == 0 || cfg.Plugins[0].Supervisor.Limits != limits {
		t.Fatalf("Plugins = %+v, want at least one, with the limits that are the built-in ones but for memory", cfg.Plugins)
	}
	if diff := cmp.Diff(confinement, cfg.Plugins[0].Supervisor.Confinement, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the sandbox of the first plugin is not the built-in one with /proc (-want +got):\n%s", diff)
	}
}

// TestContents: a configuration keeps the digest of its contents when it is moved.
func TestContents(t *testing.T) {
	contents := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(path, config.LoadOptions{LookupEnv: environment(nil)})
		if err != nil {
			t.Fatal(err)
		}
		if cfg.Path != path || cfg.StateNamed {
			t.Errorf("Load(%s) has the path %s, and state_dir is given: %v", path, cfg.Path, cfg.StateNamed)
		}
		return cfg.Contents
	}
	one := contents("a.hcl", "workspace = \".\"\n")
	if moved := contents("b.hcl", "workspace = \".\"\n"); moved != one {
		t.Errorf("the digest is %s, and %s elsewhere", one, moved)
	}
	if other := contents("a.hcl", "workspace = \".\""); other == one {
		t.Errorf("another content has the same digest %s", other)
	}
}

// TestDigest: two configurations have the same digest only if the files have the same
// names and contents.
func TestDigest(t *testing.T) {
	seen := map[string]int{}
	for n, files := range []map[string]string{
		{"a.hcl": "workspace = \".\"\n"},
		{"a.hcl": "workspace = \".\""},
		{"b.hcl": "workspace = \".\"\n"},
		{"a.hcl": "workspace = \".\"\n", "b.hcl": ""},
		{"a.hcl": "", "b.hcl": "workspace = \".\"\n"},
	} {
		dir := t.TempDir()
		t.Chdir(dir)
		for name, text := range files {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cfg, err := config.Load(".", config.LoadOptions{LookupEnv: environment(nil)})
		if err != nil {
			t.Fatal(err)
		}
		again, err := config.Load(".", config.LoadOptions{LookupEnv: environment(nil)})
		if err != nil || again.Digest != cfg.Digest {
			t.Errorf("%d: digest %s, then %s, %v", n, cfg.Digest, again.Digest, err)
		}
		if before, taken := seen[cfg.Digest]; taken {
			t.Errorf("%d has the digest of %d", n, before)
		}
		seen[cfg.Digest] = n
	}
}
