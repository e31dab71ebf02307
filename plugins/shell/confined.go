package main

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// trialTime bounds the trial run of bash at start.
const trialTime = 5 * time.Second

// unusable returns why commands cannot run here, or nil if they can. A shell can run
// anything, so the plugin disables commands if it has no sandbox to confine them.
func (s *shell) unusable(ctx context.Context) *tool.Error {
	set := s.settings.Load()
	if set.Backend == backendDisabled {
		return tool.Errorf(tool.Unavailable, "commands are disabled on this host").
			WithHint("ask the administrator to set backend in the settings of the plugin")
	}
	if !set.Unconfined && !confined() {
		return tool.Errorf(tool.Unavailable, "commands are disabled: the plugin has no sandbox").
			WithHint("ask the administrator to set isolation in the plugin's sandbox block (toolhost doctor lists what this system supports), or unconfined in the settings of the plugin to run commands without a sandbox")
	}
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	env, err := set.environment(places{home: "/", tmp: "/tmp"}, "dumb", nil)
	if err != nil {
		return tool.AsError(err)
	}
	result, err := proc.Run(ctx, proc.Command{Path: "bash", Args: bashArgs("-c", ":"), Env: env})
	if err == nil && result.ExitCode == 0 {
		return nil
	}
	hint := "install bash, and allow the plugin's sandbox to execute it (exec)"
	if err == nil {
		hint = "bash ended with: " + strings.TrimSpace(result.Stderr.String()) + "; " + hint
	} else if e := tool.AsError(err); e.Code != tool.Internal {
		hint = e.Message + "; " + hint
	}
	return tool.Errorf(tool.Unavailable, "commands are disabled: bash cannot be executed").WithHint("%s", hint).WithCause(err)
}

// confined reports whether the kernel filters the system calls of this process and
// keeps it from gaining privileges. Every sandbox of a host does both. A plugin
// without a sandbox (isolation = "off") has only the second.
func confined() bool {
	status, err := os.ReadFile("/proc/self/status")
	return err == nil && confinedBy(string(status))
}

// confinedBy is [confined] for a given /proc/self/status.
func confinedBy(status string) bool {
	return strings.Contains(status, "\nNoNewPrivs:\t1\n") && strings.Contains(status, "\nSeccomp:\t2\n")
}
