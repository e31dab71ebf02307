package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/plugin/workspace"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestUserWorkspaces reads a workspace for each user.
func TestUserWorkspaces(t *testing.T) {
	t.Parallel()
	const own = "workspace = \"ws/${caller.user}\"\n"
	agent := func(user string) string {
		return "auth {\n token \"t\" {\n  sha256 = \"" + strings.Repeat("a1", 32) + "\"\n  user = \"" + user + "\"\n  roles = [\"agent\"]\n }\n}\n"
	}
	for _, tt := range []struct {
		text, mistake string
		want          workspace.Dirs // with paths relative to the configuration
		scope         supervisor.Scope
	}{
		{text: own, want: workspace.Dirs{Parent: "ws"}},
		{text: "workspace = \"ws/of-${caller.user}.d\"\nworkspace_template = \"new\"", want: workspace.Dirs{Parent: "ws", Prefix: "of-", Suffix: ".d", Template: "new"}},
		{text: "locals {\n place = \"ws\"\n}\nworkspace = \"${local.place}/${caller.user}\"", want: workspace.Dirs{Parent: "ws"}},
		{text: own + agent("ada"), want: workspace.Dirs{Parent: "ws"}},
		{text: own + agent("ada b"), mistake: `config.hcl:5: No workspace: Each user who calls tools works in a directory of that name`},
		{text: own + strings.Replace(agent("ada b"), "agent", "approver", 1), want: workspace.Dirs{Parent: "ws"}},
		{text: "workspace = \"ws/${caller.user}/work\"", mistake: "Expected ${caller.user} once, as it is, in the last name of the path"},
		{text: "workspace = \"ws/${caller.user}${caller.user}\"", mistake: "Expected ${caller.user} once"},
		{text: "workspace = \"ws/${upper(caller.user)}\"", mistake: "Expected ${caller.user} once, as it is"},
		{text: "workspace = \"ws/.${caller.user}\"", mistake: "which does not begin with a dot"},
		{text: "workspace = caller.user == \"ada\" ? \"ws/a\" : \"ws/b\"", mistake: "Expected ${caller.user} once"},
		{text: "workspace = \"ws/${caller.session}\"", mistake: "Unsupported attribute"},
		{text: "workspace = \"gone/${caller.user}\"", mistake: "which must be an existing directory. Create it"},
		{text: "workspace = \"open/${caller.user}\"", mistake: "other accounts can make files in /"},
		{text: "workspace = \"open/in/${caller.user}\"", mistake: "/open (mode -rwxrwxrwx): run chmod go-w /"},
		{text: "workspace = \"link/${caller.user}\"", mistake: "/open (mode -rwxrwxrwx): run chmod go-w /"},
		{text: own + "workspace_template = \"open/in\"", mistake: "config.hcl:2: Writable by others: No other account may change what new workspaces begin with"},
		{text: own + "workspace_template = \"ws/in\"", mistake: "config.hcl:2: Wrong workspace_template: It and the directory of the workspaces of users ("},
		{text: own + "workspace_template = \".\"", mistake: "config.hcl:2: Wrong workspace_template: It and the directory of the workspaces of users ("},
		{text: own + "workspace_template = \"st/in\"\nstate_dir = \"st\"", mistake: "config.hcl:2: Wrong workspace_template: It and the directory of the state of the host ("},
		{text: own + "workspace_template = \"gone\"", mistake: "A new workspace begins with the content of workspace_template, which must be an existing directory"},
		{text: "workspace = \"ws\"\nworkspace_template = \"new\"", mistake: "config.hcl:2: Useless workspace_template"},
		{text: "workspace = \"ws\"\nworkspace_quota = \"10GiB\"", mistake: "config.hcl:2: Useless workspace_quota"},
		{text: own + "workspace_quota = \"1KiB\"", mistake: `Expected a size of at least "1MiB" for workspace_quota, not "1KiB".`},
		{text: own + "workspace_quota = \"10GiB\"", want: workspace.Dirs{Parent: "ws"}},
		{text: own + "state_dir = \"ws/state\"", mistake: "State directory in the workspace"},
		{text: own + "state_dir = \"ws/${caller.user}\"", mistake: `There is no variable named "caller"`},
		{text: own + "plugin \"fs\" {\n tier = \"read_only\"\n isolation_scope = \"shared\"\n}", mistake: "config.hcl:4: One process for all users: Each user has a workspace ("},
		{text: own + "plugin \"fs\" {\n tier = \"read_only\"\n sandbox {\n  isolation = \"off\"\n }\n}", mistake: "config.hcl:2: Not apart"},
		{text: own + "plugin \"fs\" {\n tier = \"read_only\"\n}", want: workspace.Dirs{Parent: "ws"}, scope: supervisor.PerUser},
		{text: own + "plugin \"fs\" {\n tier = \"read_only\"\n isolation_scope = \"session\"\n}", want: workspace.Dirs{Parent: "ws"}, scope: supervisor.PerSession},
		{text: own + "plugin \"fs\" {\n tier = \"read_only\"\n enabled = false\n}", want: workspace.Dirs{Parent: "ws"}},
		{text: own + "plugin \"fs\" {\n tier = \"read_only\"\n sandbox {\n  filesystem {\n   workspace = \"none\"\n  }\n }\n}", want: workspace.Dirs{Parent: "ws"}},
		{text: own + "plugin \"fs\" {\n tier = \"read_only\"\n isolation_scope = \"user\"\n sandbox {\n  run_as = \"7:7\"\n }\n}", mistake: "Closed workspace: The sandbox of this plugin has run_as"},
	} {
		dir := write(t, map[string]string{"config.hcl": tt.text + "\nplugin_dir = \"plugins\"\n"})
		for _, name := range []string{"ws", "open", "new", "plugins", "st", "open/in", "ws/in", "st/in"} {
			if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("open/in", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, "open"), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "plugins", "fs"), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(filepath.Join(dir, "config.hcl"), config.LoadOptions{LookupEnv: environment(map[string]string{"XDG_STATE_HOME": "/nowhere"})})
		if tt.mistake != "" {
			if err == nil || !strings.Contains(err.Error(), tt.mistake) {
				t.Errorf("%s: Load() = %v, want %q", tt.text, err, tt.mistake)
			}
			continue
		}
		if tt.want.Parent = filepath.Join(dir, tt.want.Parent); tt.want.Template != "" {
			tt.want.Template = filepath.Join(dir, tt.want.Template)
		}
		if err != nil || cfg.Workspace != tt.want {
			t.Errorf("%s: %+v, %v, want %+v", tt.text, cfg, err, tt.want)
			continue
		}
		if quota := strings.Contains(tt.text, "_quota"); quota != (cfg.WorkspaceQuota == 10*tool.GiB) {
			t.Errorf("%s: the quota is %v", tt.text, cfg.WorkspaceQuota)
		}
		for _, p := range cfg.Plugins {
			if p.Supervisor.Scope != tt.scope {
				t.Errorf("%s: plugin %s has the scope %v, want %v", tt.text, p.Supervisor.Name, p.Supervisor.Scope, tt.scope)
			}
		}
	}
}
