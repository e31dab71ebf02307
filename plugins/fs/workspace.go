package main

import (
	"context"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// defaultBudget is the size of a result if the host names none.
	defaultBudget = 16 * tool.KiB
	// defaultMaxRead is how much of a file is returned without settings.
	defaultMaxRead = tool.MiB
)

// workspace is what one call may read, and how much it may answer.
type workspace struct {
	*roots.Roots
	// budget is the size in bytes that the text of the result should have at
	// most.
	budget int
	// maxRead is how much of one file's content is returned at most.
	maxRead int
}

// settings are the plugin's block in the host's configuration.
type settings struct {
	MaxRead tool.ByteSize `json:"max_read,omitempty" jsonschema:"how much of one file read_file returns at most" default:"1MiB"`
	Secrets []string      `json:"secrets,omitempty" jsonschema:"patterns of names that are never read, such as .env or *.key; a pattern covers everything below it, one that begins with ! takes back an earlier one; replaces the built-in list"`
}

// inWorkspace makes the function of a tool out of one that gets the workspace
// of its call, which is closed when it returns.
func inWorkspace[In any](f *files, run func(context.Context, *workspace, In) (tool.Result, error)) func(context.Context, *sdk.Call, In) (tool.Result, error) {
	return func(ctx context.Context, c *sdk.Call, in In) (tool.Result, error) {
		w, err := openWorkspace(c.Roots(), c.MaxOutput(), f.settings.Load())
		if err != nil {
			return tool.Result{}, err
		}
		defer func() { _ = w.Close() }() // nothing was written
		return run(ctx, w, in)
	}
}

func openWorkspace(dirs []string, budget tool.ByteSize, s *settings) (*workspace, error) {
	if s == nil {
		s = &settings{}
	}
	r, err := roots.Open(dirs, roots.Options{Secrets: s.Secrets})
	if err != nil {
		return nil, tool.Errorf(tool.Unavailable, "The workspace cannot be opened").WithCause(err)
	}
	if budget <= 0 {
		budget = defaultBudget
	}
	maxRead := s.MaxRead
	if maxRead <= 0 {
		maxRead = defaultMaxRead
	}
	return &workspace{Roots: r, budget: int(budget), maxRead: int(maxRead)}, nil
}
