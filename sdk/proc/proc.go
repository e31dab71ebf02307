// Package proc runs commands that leave nothing behind: when a command ends, is
// given up, or the plugin itself ends or is killed, every process that it has
// started is killed, whatever that has done to get away. It needs no namespaces,
// which are closed to plugins, and no rights.
//
// On Linux, a reaper process per command (the plugin's own program, executed
// anew) becomes the parent of what the command leaves behind. If a command kills
// its reaper, the plugin does its work; therefore the plugin adopts orphans
// (PR_SET_CHILD_SUBREAPER) from the first command on. Elsewhere, a command is
// killed with its process group only, what has left the group survives, and
// limits and rules are not applied.
//
// A command gets the arguments, environment, limits and rules that it is given,
// and nothing of the plugin's: no variable, no open file, no ignored signal.
// There is no shell in between.
//
// What the caller has got wrong is reported as *[tool.Error], written for a
// model. A command that fails, or is given up, is a [Result].
package proc

import "context"

// Run runs a command and waits until it has ended and nothing of it is left. It
// returns when the command itself ends, even if something that it started holds
// its output open. When ctx ends, the command is stopped as [Command.Grace]
// says, and the result tells so.
//
// An error means that the command was not started, or that it has killed its reaper, so how it
// ended is unknown. Even then, none of its processes is left.
func Run(ctx context.Context, c Command) (Result, error) {
	p, err := Start(ctx, c)
	if err != nil {
		return Result{}, err
	}
	return p.Wait()
}
