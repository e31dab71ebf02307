// Command tasks counts what whole tasks of an agent cost: calls, bytes that the model reads and
// writes, and questions to a person. The same 20 tasks are done on generated repositories with
// the tools of toolhost, in its shipped configuration over MCP, and with the built-in tools of
// Claude Code, which runs with a mock model that makes the calls. Both final states are checked.
// The person allows everything, and for the rest of the session where that is offered.
//
//	make build peers
//	npm --prefix internal/tools/agents install --no-package-lock
//	go run ./bench/tasks     prints a table
//	go run ./bench/tasks -v  prints each call and its result, too
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

// options are the flags.
type options struct {
	bin, config, claude, node, dir, only string
	log                                  io.Writer // gets each call, its result, and the questions
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin", "where toolhost and its plugins are")
	flag.StringVar(&o.config, "config", "config.hcl", "the shipped configuration")
	flag.StringVar(&o.claude, "claude", "internal/tools/agents/node_modules/@anthropic-ai/claude-code-linux-x64/claude", "the program Claude Code")
	flag.StringVar(&o.node, "node", "internal/tools/mcp/node_modules/node/bin/node", "a node that runs TypeScript, 22.18 or newer")
	flag.StringVar(&o.dir, "dir", "", "where to work, and to keep caches for the next time; default: a temporary directory")
	flag.StringVar(&o.only, "only", "", "do only tasks whose names contain this")
	verbose := flag.Bool("v", false, "print each call, its result, and the questions")
	flag.Parse()
	if o.log = io.Discard; *verbose {
		o.log = os.Stdout
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "tasks:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	for _, path := range []*string{&o.bin, &o.claude, &o.node} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
		if _, err := os.Stat(*path); err != nil {
			return fmt.Errorf("%w; see `go doc ./bench/tasks` for what to install", err)
		}
	}
	dir, err := filepath.Abs(o.dir)
	if o.dir == "" {
		dir, err = os.MkdirTemp("", "tasks-")
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	if err != nil {
		return err
	}
	var done []row
	for _, t := range append([]task{warmUp}, tasks()...) {
		counted := t.name != warmUp.name
		if counted && !strings.Contains(t.name, o.only) {
			continue
		}
		both, failed := do(ctx, o, t, dir)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", t.name, failed))
		} else if counted {
			done = append(done, both)
		}
	}
	return errors.Join(err, printTable(os.Stdout, done))
}

// do does one task with both.
func do(ctx context.Context, o options, t task, dir string) (row, error) {
	both := row{name: t.name}
	for i, side := range sides {
		var err error
		if both.cost[i], err = side.do(ctx, o, t, filepath.Join(dir, side.name)); err != nil {
			return row{}, fmt.Errorf("with %s: %w", side.name, err)
		}
	}
	return both, nil
}
