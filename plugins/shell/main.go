// Command shell is a plugin that lets an agent run commands: one at a time, in a
// shell that lives as long as its session, and in the background. Nothing of a
// command is left when it has ended.
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
	// resultRoom is how much of its output a command's result holds, unless the
	// host says otherwise.
	resultRoom = 32 * tool.KiB
	// margin is what a call has beyond the time of its command: to kill what is
	// left of it, and to answer.
	margin = 15 * time.Second
)

func main() {
	if interpreter.Entered() {
		os.Exit(interpreter.Main())
	}
	newPlugin().Serve()
}

// newPlugin returns the plugin. Its settings say which tools it has.
func newPlugin() *sdk.Plugin {
	p := sdk.New("shell", "1.0.0")
	s := &shell{plugin: p, owners: newOwners()}
	sdk.Configure(p, s.configure)
	p.OnSessionEnd(s.owners.end)

	return p
}

// shell is what the tools share.
type shell struct {
	plugin   *sdk.Plugin
	owners   *owners
	settings atomic.Pointer[settings]
	// disabled is why no command can be run; nil if they can.
	disabled atomic.Pointer[tool.Error]
	scratch  string // where temporary files go

	interpreters interpreters

	restoring sync.Mutex // held by whoever restores a user's directory
}

// configure takes the settings, which come before the first call, and adds the
// tools.
func (s *shell) configure(ctx context.Context, c sdk.Config, set settings) error {
	if err := errors.Join(set.mistakes()...); err != nil {
		return err
	}
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

// addTools adds the tools that the settings ask for: a shell that lives on reads
// its commands as another one would read its input.
func (s *shell) addTools(set settings) {
	run := tool.Spec{
		Name: "shell_exec", Aliases: []string{"shell"}, Tier: tool.Privileged, Destructive: true, OpenWorld: true,
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

// add adds a tool whose description is the file of its name.
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
