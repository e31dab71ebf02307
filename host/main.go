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

	"github.com/toolhost/toolhost/host/internal/sandbox"
)

// version is set by the linker.
var version = "dev"

func main() {
	sandbox.Reexec()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // short-lived garbage of JSON and gRPC; the heap itself is small
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	app := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	code := app.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
