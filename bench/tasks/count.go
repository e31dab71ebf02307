package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// taskTimeout bounds one task with one client.
const taskTimeout = 10 * time.Minute

// cost is what a task costs with one client.
type cost struct{ calls, read, written, questions int }

// row is one task with both.
type row struct {
	name string
	cost [2]cost // as sides
}

// client makes calls of tools as the model of an agent.
type client interface {
	// call returns the text of the result, and the size of files beside it as they are sent.
	call(ctx context.Context, tool string, args map[string]any) (text string, files int, err error)
	close() (questions int, err error)
}

// side is one of the two that are compared.
type side struct {
	name  string
	steps func(task) []step
	start func(ctx context.Context, o options, dir string) (client, error)
}

var sides = [2]side{
	{"toolhost", func(t task) []step { return t.toolhost }, func(ctx context.Context, o options, dir string) (client, error) {
		return startToolhost(ctx, o, dir)
	}},
	{"claude", func(t task) []step { return t.claude }, func(ctx context.Context, o options, dir string) (client, error) {
		return startClaudeCode(ctx, o, dir)
	}},
}

// do does a task in the repository dir/ws, and checks it.
func (s side) do(ctx context.Context, o options, t task, dir string) (cost, error) {
	ctx, cancel := context.WithTimeout(ctx, taskTimeout)
	defer cancel()
	ws := filepath.Join(dir, "ws")
	r := t.repo(ws)
	if t.typescript {
		r.run("mkdir", "-p", "node_modules/.bin")
		r.run("cp", o.node, "node_modules/.bin/node") // npm prefers it
	}
	if t.prepare != nil {
		t.prepare(r)
	}
	if r.err != nil {
		return cost{}, r.err
	}
	client, err := s.start(ctx, o, dir)
	if err != nil {
		return cost{}, err
	}
	var c cost
	said := ""
	for next := s.steps(t); len(next) > 0; {
		step := next[0]
		next = next[1:]
		args := step.args.fill(ws, said)
		text, files, err := client.call(ctx, step.tool, args)
		if err != nil {
			_, failed := client.close()
			return cost{}, errors.Join(err, failed)
		}
		fmt.Fprintf(o.log, "=== %s: %s %s\n%s\n", s.name, step.tool, args, text)
		if strings.HasPrefix(text, "Still running: ") || strings.HasPrefix(text, "Not run yet: ") {
			next = slices.Insert(next, 0, waitFor)
		}
		said += text + "\n"
		c.calls++
		c.read += len(strings.TrimRight(text, "\n")) + files // Claude Code trims the output of commands
		c.written += len(args.String())
	}
	if c.questions, err = client.close(); err != nil {
		return cost{}, err
	}
	fmt.Fprintf(o.log, "=== %s: %s: %+v\n", s.name, t.name, c)
	if t.check != nil {
		t.check(r, said)
	}
	return c, r.err
}

// waitFor is the call for the result of one that has none yet.
var waitFor = step{"call_wait", args{"id": found{"", `(?:tc|ap)_[0-9a-f-]+`}}}

// printTable prints what each task cost, and how often toolhost needs as much or less.
func printTable(out io.Writer, rows []row) error {
	var b strings.Builder
	b.WriteString("| task | calls | bytes read | bytes written | questions |\n|---|---|---|---|---|\n")
	var sum [2]cost
	var fewer cost
	for _, r := range rows {
		t, c := r.cost[0], r.cost[1]
		fmt.Fprintf(&b, "| %s | %d / %d | %d / %d | %d / %d | %d / %d |\n", r.name, t.calls, c.calls, t.read, c.read, t.written, c.written, t.questions, c.questions)
		for side := range sum {
			s, of := &sum[side], r.cost[side]
			s.calls, s.read, s.written, s.questions = s.calls+of.calls, s.read+of.read, s.written+of.written, s.questions+of.questions
		}
		fewer.calls += one(t.calls <= c.calls)
		fewer.read += one(t.read <= c.read)
		fewer.written += one(t.written <= c.written)
		fewer.questions += one(t.questions <= c.questions)
	}
	t, c := sum[0], sum[1]
	fmt.Fprintf(&b, "| together | %d / %d | %d / %d | %d / %d | %d / %d |\n", t.calls, c.calls, t.read, c.read, t.written, c.written, t.questions, c.questions)
	fmt.Fprintf(&b, "| fewer or equal, of %d | %d | %d | %d | %d |\n", len(rows), fewer.calls, fewer.read, fewer.written, fewer.questions)
	_, err := io.WriteString(out, b.String())
	return err
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
