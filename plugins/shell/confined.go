package main

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// trialTime is how long the first shell may take.
const trialTime = 5 * time.Second

// unusable says why no command can be run here, nil if they can: a shell runs
// anything, so it runs nothing without the sandbox that is to hold it.
func (s *shell) unusable(ctx context.Context) *tool.Error {
	set := s.settings.Load()
	if set.Backend == backendDisabled {
		return tool.Errorf(tool.Unavailable, "commands are disabled on this host").
			WithHint("the administrator can enable them: backend in the settings of the plugin")
	}
	if !set.Unconfined && !confined() {
		return tool.Errorf(tool.Unavailable, "commands are disabled: the plugin has no sandbox that would hold them").
			WithHint("the administrator gives it one: isolation in its sandbox block, and toolhost doctor says what works here; unconfined in the settings of the plugin runs commands all the same")
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
	hint := "bash must be installed, and the sandbox of the plugin let it be executed (exec)"
	if err == nil {
		hint = "bash has ended with: " + strings.TrimSpace(result.Stderr.String()) + "; " + hint
	} else if e := tool.AsError(err); e.Code != tool.Internal {
		hint = e.Message + "; " + hint
	}
	return tool.Errorf(tool.Unavailable, "commands are disabled: bash cannot be executed").WithHint("%s", hint).WithCause(err)
}

// confined reports whether the kernel filters the system calls of this process
// and keeps it from gaining rights: what every sandbox of a host does, and a
// plugin without one (isolation = "off") has the second of only.
func confined() bool {
	status, err := os.ReadFile("/proc/self/status")
	return err == nil && confinedBy(string(status))
}

// confinedBy is [confined] for a process of that status.
func confinedBy(status string) bool {
	return strings.Contains(status, "\nNoNewPrivs:\t1\n") && strings.Contains(status, "\nSeccomp:\t2\n")
}
