// Command toolhost lets AI agents use tools without trusting them: every
// family of tools is a process of its own under limits, one configuration file
// says what may run, and agents reach it over MCP.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// version is set by the linker.
var version = "dev"

// collectFrom is how many bytes the host takes before it collects its garbage as
// often as it takes to need no more: many large results at once are much garbage.
const collectFrom = 128 << 20

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // short-lived garbage of JSON and gRPC; the heap itself is small
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(collectFrom)
	}
	// A reader that goes away is an error of the write, not the end of the host
	// without its clean-up. (Ignoring the signal would reach the plugins.)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	app := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, program: os.Args[0]}
	os.Exit(app.run(ctx, os.Args[1:]))
}
