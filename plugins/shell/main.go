// Command shell is a plugin that lets an agent run commands: one at a time, in a
// shell that lives as long as its session, and in the background. When a command
// ends, the plugin kills every process that the command left behind.
package main

import (
	"context"
	"embed"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/plugins/shell/internal/interpreter"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// resultRoom is the default size limit of a command's result. Clients cut longer
	// texts.
	resultRoom = 40 * tool.KiB
	// margin is the time that a call has beyond the time-out of its command: to
	// kill remaining processes and to return the result.
	margin = 15 * time.Second
)

func main() {
	if interpreter.Entered() {
		os.Exit(interpreter.Main())
	}
	newPlugin().Serve()
}

// newPlugin returns the plugin. The settings determine its tools.
func newPlugin() *sdk.Plugin {
	p := sdk.New("shell", "1.0.0")
	s := &shell{plugin: p, owners: newOwners()}
	sdk.Configure(p, s.configure)
	p.OnSessionEnd(s.owners.end)

	return p
}

// shell is the state that all tools share.
type shell struct {
	plugin   *sdk.Plugin
	owners   *owners
	settings atomic.Pointer[settings]
	// disabled is the reason for which commands cannot run; nil if they can.
	disabled atomic.Pointer[tool.Error]
	scratch  string // the directory for temporary files

	interpreters interpreters

	restoring sync.Mutex // held while a user's directory is restored
}

// configure applies the settings and adds the tools. The host sends the settings
// before the first call.
func (s *shell) configure(ctx context.Context, c sdk.Config, set settings) error {
	if err := errors.Join(set.mistakes()...); err != nil {
		return err
	}
	set.proxyEnv = c.ProxyEnv()
	s.settings.Store(&set)
	s.scratch = c.ScratchDir
	s.owners.bound(bounds{
		jobs: set.MaxJobs, jobsOfUser: set.MaxJobsPerUser, shells: set.MaxShellsPerUser, idle: set.SessionIdle,
	})
	why := s.unusable(ctx)
	s.disabled.Store(why)
	if why != nil {
		s.plugin.Logger().Warn("commands are disabled", "reason", why.Message)
	}
	s.addTools(set)
	s.plugin.OnStop(s.owners.close)
	s.plugin.OnStop(s.interpreters.close)
	return nil
}

// addTools adds the tools that the settings ask for. Commands for the shell of a
// session have another schema and preview than commands with a shell of their own.
func (s *shell) addTools(set settings) {
	run := tool.Spec{
		Name: "shell_exec", Core: true, Aliases: []string{"Bash", "shell", "bash"}, Tier: tool.Privileged, Destructive: true, OpenWorld: true,
		MaxOutput: resultRoom, Timeout: set.MaxTimeout + margin,
	}
	if set.Backend == backendSession {
		run.Description = sdk.Description(descriptions, "shell_exec_session")
		sdk.AddToolWithPreview(s.plugin, withCategory(run), s.execSession, s.previewSession)
	} else {
		run.Description = sdk.Description(descriptions, "shell_exec")
		run.CommandTree = executesTrees
		sdk.AddTool(s.plugin, withCategory(run), s.exec)
	}
	add(s, s.background, tool.Spec{Name: "shell_background", Tier: tool.Privileged, Destructive: true, OpenWorld: true, Timeout: time.Minute})
	add(s, s.output, tool.Spec{Name: "process_output", Tier: tool.ReadOnly, MaxOutput: resultRoom, Timeout: maxWait + margin})
	add(s, s.list, tool.Spec{Name: "process_list", Tier: tool.ReadOnly})
	add(s, s.input, tool.Spec{Name: "process_input", Tier: tool.SideEffecting, Timeout: time.Minute})
	add(s, s.kill, tool.Spec{Name: "process_kill", Tier: tool.SideEffecting, Destructive: true, Timeout: time.Minute})
}

// add adds a tool. The description is in the file with the tool's name.
func add[In any](s *shell, run func(context.Context, *sdk.Call, In) (tool.Result, error), spec tool.Spec) {
	spec.Description = sdk.Description(descriptions, spec.Name)
	sdk.AddTool(s.plugin, withCategory(spec), run)
}

func withCategory(spec tool.Spec) tool.Spec {
	spec.Category = "shell"
	return spec
}

//go:embed descriptions
var descriptions embed.FS
