// Command toolhost lets AI agents use tools without trusting them. Each plugin is a separate
// process under limits, one configuration file decides what may run, and agents connect over
// MCP.
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

// collectFrom is the heap size, in bytes, above which the host collects garbage as often as
// needed: many large results at once produce much garbage.
const collectFrom = 128 << 20

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // the garbage of JSON and gRPC is short-lived, and the heap is small
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(collectFrom)
	}
	// Writing to a closed output must fail, not end the host without its clean-up. (Plugins
	// would inherit an ignored signal.)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	app := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, program: os.Args[0]}
	os.Exit(app.run(ctx, os.Args[1:]))
}
