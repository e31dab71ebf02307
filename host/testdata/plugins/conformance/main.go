// Command conformance is a plugin for tests: the tools that the conformance
// suite of the Model Context Protocol calls, as far as a plugin can offer them.
// Their names, arguments and answers are the suite's.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

func main() {
	p := sdk.New("conformance", "1.0.0")
	addContents(p)
	addQuestions(p)
	add(p, "test_error_handling", "Fails.", func(context.Context, *sdk.Call, none) (tool.Result, error) {
		return tool.Result{}, errors.New("this tool intentionally returns an error for testing")
	})
	// A call of the first makes the test take the second from the list of tools,
	// or give it back.
	add(p, "test_trigger_tool_change", "Changes the list of tools.", done)
	add(p, "test_dynamic_tool", "Is listed at times.", done)
	add(p, "test_tool_with_progress", "Reports progress three times.", reportProgress)
	add(p, "test_tool_with_logging", "Writes three lines to the log.", writeLog)
	add(p, "test_logging_tool", "Writes a line to the log.", func(_ context.Context, c *sdk.Call, _ none) (tool.Result, error) {
		c.Logger().Info("Tool called")
		return tool.TextResult("The tool has written to its log."), nil
	})
	p.Serve()
}

type none struct{}

func add[In any](p *sdk.Plugin, name, description string, run func(context.Context, *sdk.Call, In) (tool.Result, error)) {
	sdk.AddTool(p, tool.Spec{Name: name, Tier: tool.ReadOnly, Description: description}, run)
}

func done(context.Context, *sdk.Call, none) (tool.Result, error) { return tool.TextResult("done"), nil }

// pause is what the suite wants between two reports of a tool.
const pause = 50 * time.Millisecond

func reportProgress(ctx context.Context, c *sdk.Call, _ none) (tool.Result, error) {
	for done := 0.0; done <= 100; done += 50 {
		c.Progress(tool.Progress{Progress: done, Total: 100})
		if err := wait(ctx); err != nil {
			return tool.Result{}, err
		}
	}
	return tool.TextResult("The tool has reported its progress."), nil
}

func writeLog(ctx context.Context, c *sdk.Call, _ none) (tool.Result, error) {
	for _, line := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		c.Logger().Info(line)
		if err := wait(ctx); err != nil {
			return tool.Result{}, err
		}
	}
	return tool.TextResult("The tool has written to its log."), nil
}

func wait(ctx context.Context) error {
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
