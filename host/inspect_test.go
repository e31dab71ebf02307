package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestInspection(t *testing.T) {
	t.Parallel()
	crash := &process.Crash{Time: time.Date(2026, 1, 31, 15, 4, 5, 0, time.Local), Cause: "panicked", Detail: "exit code 2: panic: oh\x1b", Stderr: "panic: oh\n\ngoroutine 1"}
	for _, tt := range []struct {
		name string
		p    httpapi.Plugin
		want string
	}{
		{"one that works", httpapi.Plugin{
			State: supervisor.State{
				Name: "git", Phase: supervisor.Ready, PID: 7, Calls: 2, Crashes: 1, Version: "1.0", Digest: "0a1b", LastCrash: crash,
				SettingsSchema: json.RawMessage(`{"properties":{"wait":{"type":"integer","x-unit":"duration","default":60000000000,"description":"how long\u001b"},"names":{"type":"array","items":{"type":"string"}}}}`),
				Sandbox: &sandbox.Report{Layers: []string{"rlimits", "caps=0"}, Missing: []sandbox.Gap{
					{Layer: sandbox.LayerPIDNS, Reason: "not permitted", Remedy: "permit it"},
					{Layer: sandbox.LayerIPCNS, Reason: "not permitted", Remedy: "permit it"},
					{Layer: sandbox.LayerProc, Reason: "it needs the layer pidns", Remedy: "permit it"},
				}},
			},
			Tools: []httpapi.PluginTool{
				{Name: "branch", Tier: tool.ReadOnly, HighestTier: tool.SideEffecting},
				{Name: "log", Tier: tool.ReadOnly, Roles: map[tool.Role][]string{tool.RolePath: {"path", "files"}, tool.RoleCommand: {"format"}}},
			},
			RefusedTools: []httpapi.RefusedTool{{Name: "push", Reason: "it is above the ceiling"}},
		}, `
Plugin:     git
Phase:      ready, since 0001-01-01T00:00:00Z
Process:    7, with 2 calls in progress
Version:    1.0
SHA-256:    0a1b
Limits:     core 0B
Isolation:  auto
In force:   rlimits, caps=0
Missing:    pidns, ipcns: not permitted; remedy: permit it
Missing:    proc: it needs the layer pidns
Crashes:    1

TOOL    TIER                                              ROLES OF ARGUMENTS
branch  read_only, by its arguments up to side_effecting  -
log     read_only                                         command: format; path: path, files

Settings (config block):
NAME   TYPE            DEFAULT  DESCRIPTION
names  list of string  -        -
wait   duration        "1m"     how long\x1b

git crashed at 2026-01-31 15:04:05 and was started again: it panicked (exit code 2: panic: oh\x1b)
    panic: oh
    
    goroutine 1

git: tool push is refused: it is above the ceiling
`},
		{"one that cannot", httpapi.Plugin{State: supervisor.State{
			Name: "web", Phase: supervisor.Broken, Isolation: sandbox.Strict, Refused: "its sandbox requires netns",
		}}, `
Plugin:     web
Phase:      broken, since 0001-01-01T00:00:00Z
Version:    -
SHA-256:    -
Limits:     core 0B
Isolation:  strict
In force:   nothing: the plugin is refused; what a start would give: toolhost doctor
Crashes:    0

web is refused: its sandbox requires netns
`},
		{"one that is kept off", httpapi.Plugin{State: supervisor.State{
			Name: "web", Phase: supervisor.Broken, Isolation: sandbox.Strict, Crashes: 5, RetryAt: time.Unix(0, 0).UTC(),
		}}, `
Plugin:     web
Phase:      broken, since 0001-01-01T00:00:00Z
Version:    -
SHA-256:    -
Limits:     core 0B
Isolation:  strict
Crashes:    5

web is started again at the first call after 1970-01-01T00:00:00Z, or by: toolhost plugins restart web
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			if err := (&app{stdout: &out}).printPlugin(tt.p); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
