package main

import (
	"context"
	"slices"

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
	// approved is the digest of the preview that was approved; nil if there
	// was none.
	approved []byte
	// userDir is a directory of the user's own, outside; "" if there is none.
	userDir string
	// options are those of the folders.
	options roots.Options
	// onClose is called in reverse order.
	onClose []func()
}

// Close unlocks what was locked and closes everything.
func (w *workspace) Close() error {
	for _, f := range slices.Backward(w.onClose) {
		f()
	}
	w.onClose = nil
	return w.Roots.Close()
}

// settings are the plugin's block in the host's configuration.
type settings struct {
	MaxRead tool.ByteSize `json:"max_read,omitempty" jsonschema:"how much of one file read_file returns at most" default:"1MiB"`
	Secrets []string      `json:"secrets,omitempty" jsonschema:"patterns of names that are never read, such as .env or *.key; a pattern covers everything below it, one that begins with ! takes back an earlier one; replaces the built-in list"`
	Protect []string      `json:"protect,omitempty" jsonschema:"patterns of names that are never changed, read as those of secrets; replaces the built-in list, .git/hooks and .git/config"`
}

// inWorkspace makes the function of a tool out of one that gets the workspace
// of its call, which is closed when it returns.
func inWorkspace[In any](f *files, run func(context.Context, *workspace, In) (tool.Result, error)) func(context.Context, *sdk.Call, In) (tool.Result, error) {
	return func(ctx context.Context, c *sdk.Call, in In) (tool.Result, error) {
		w, err := f.open(c)
		if err != nil {
			return tool.Result{}, err
		}
		defer func() { _ = w.Close() }() // what was written is durable
		return run(ctx, w, in)
	}
}

// open opens the workspace of a call. The caller closes it.
func (f *files) open(c *sdk.Call) (*workspace, error) {
	options := roots.Options{Protected: c.Protected(), Writers: &f.writers}
	w, err := openWorkspace(c.Roots(), options, c.MaxOutput(), f.settings.Load())
	if err != nil {
		return nil, err
	}
	w.userDir = c.UserDir()
	if digest := c.PreviewDigest(); len(digest) > 0 {
		w.approved = digest
	}
	return w, nil
}

func openWorkspace(dirs []string, options roots.Options, budget tool.ByteSize, s *settings) (*workspace, error) {
	if s == nil {
		s = &settings{}
	}
	options.Secrets, options.Protect = s.Secrets, s.Protect
	r, err := roots.Open(dirs, options)
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
	return &workspace{Roots: r, budget: int(budget), maxRead: int(maxRead), options: options}, nil
}
