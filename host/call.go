package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/pipeline"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxStdin bounds arguments read from standard input; the pipeline accepts
// less, and says so.
const maxStdin = 8 << 20

func (a *app) callCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "call TOOL [KEY=VALUE... | JSON | -]",
		Short: "Call one tool and print its result",
		Long: `Call one tool and print its result. Arguments are KEY=VALUE pairs, one JSON
object, or - for JSON on standard input. A value is taken as the type that the
tool wants: n=5 is a number if the tool wants a number.`,
		Example: `  toolhost call TOOL path=README.md
  toolhost call TOOL '{"pattern": "func", "globs": ["*.go"]}'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("which tool? toolhost tools lists them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			arguments, err := a.arguments(args[1:])
			if err != nil {
				return &usageError{err}
			}
			return a.withTools(cmd.Context(), func(d *daemon.Daemon) error {
				return a.call(cmd.Context(), d, args[0], arguments)
			})
		},
	}
}

// arguments reads the arguments of a call from the command line.
func (a *app) arguments(args []string) ([]byte, error) {
	if len(args) == 1 && args[0] == "-" {
		data, err := io.ReadAll(io.LimitReader(a.stdin, maxStdin+1))
		switch {
		case err != nil:
			return nil, fmt.Errorf("read arguments from standard input: %w", err)
		case len(data) > maxStdin:
			return nil, fmt.Errorf("the arguments on standard input are longer than %d bytes", maxStdin)
		}
		return data, nil
	}
	if len(args) == 1 && isJSON(args[0]) {
		return []byte(args[0]), nil
	}
	pairs := map[string]string{}
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%q is not KEY=VALUE; give pairs, one JSON object, or - for standard input", arg)
		}
		if _, twice := pairs[key]; twice {
			return nil, fmt.Errorf("argument %q is given twice; give a list as one JSON object", key)
		}
		pairs[key] = value
	}
	return json.Marshal(pairs)
}

// isJSON reports whether an argument is meant as JSON: an object, or a string
// for a tool that takes one as its whole arguments.
func isJSON(arg string) bool {
	arg = strings.TrimSpace(arg)
	return strings.HasPrefix(arg, "{") || strings.HasPrefix(arg, `"`)
}

// call runs one call and prints its outcome.
func (a *app) call(ctx context.Context, d *daemon.Daemon, name string, arguments []byte) error {
	var sink tool.Sink
	if isTerminal(a.stderr) {
		sink.Progress = func(p tool.Progress) { fmt.Fprintf(a.stderr, "\r\x1b[K%s", progressLine(p)) }
	}
	outcome := d.Call(ctx, pipeline.Request{Tool: name, Arguments: arguments, Sink: sink})
	if sink.Progress != nil {
		fmt.Fprint(a.stderr, "\r\x1b[K")
	}
	if a.json {
		if err := a.printJSON(outcome); err != nil {
			return err
		}
		if outcome.Result.Error != nil {
			return errReported
		}
		return nil
	}
	if err := a.printResult(outcome.Result); err != nil {
		return err
	}
	if outcome.Result.Error == nil {
		return nil
	}
	if _, unknown := d.Tool(name); unknown != nil {
		a.printProblems(d)
	}
	return outcome.Result.Error
}

// printResult prints what a person reads of a result.
func (a *app) printResult(r tool.Result) error {
	for _, c := range r.Content {
		text := fmt.Sprintf("[%s, %d bytes; --json shows them]", line(c.MediaType), len(c.Data))
		switch {
		case c.IsText() && isTerminal(a.stdout):
			text = tool.Visible(string(c.Data))
		case c.IsText():
			text = string(c.Data)
		case c.Kind == tool.KindResourceLink:
			text = line(c.URI)
		}
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if _, err := io.WriteString(a.stdout, text); err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
	}
	if r.Structured != nil && len(r.Content) == 0 {
		return a.printJSON(r.Structured)
	}
	return nil
}

func progressLine(p tool.Progress) string {
	switch {
	case p.Total > 0:
		return fmt.Sprintf("%3.0f%% %s", 100*p.Progress/p.Total, line(p.Message))
	case p.Message != "":
		return line(p.Message)
	}
	return fmt.Sprintf("%g", p.Progress)
}
