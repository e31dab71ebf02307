// Package proc runs commands that leave nothing behind. When a command ends or is stopped, or
// the plugin itself ends or is killed, all processes that the command started are killed,
// whatever they have done to escape. The package needs no privileges, and no namespaces, which
// plugins cannot create.
//
// On Linux, a reaper process per command (the plugin's own program, executed anew) becomes the
// parent of what the command leaves behind. If nothing is left and the kernel enforces the
// command's rules, the reaper waits for another command. If a command kills its reaper, the
// plugin takes over; for that, it adopts orphans (PR_SET_CHILD_SUBREAPER) from the first command
// on. On other systems, only the command's process group is killed, processes outside it
// survive, and limits and rules have no effect.
//
// A command gets only the given arguments, environment, limits and rules. It inherits nothing
// from the plugin: no variable, open file or ignored signal. No shell is involved.
//
// A mistake of the caller is an error of type *[tool.Error], written for a model. A command
// that fails or is stopped has a [Result].
package proc

import "context"

// Run runs a command and waits until the command and all its processes have ended. It returns
// when the command itself ends, even if a process that it started keeps its output open. When
// ctx ends, the command is stopped as described at [Command.Grace], and the result says so.
//
// An error means that the command was not started, or that it killed its reaper, so that its
// exit status is unknown. Even then, none of its processes is left.
func Run(ctx context.Context, c Command) (Result, error) {
	p, err := Start(ctx, c)
	if err != nil {
		return Result{}, err
	}
	return p.Wait()
}
