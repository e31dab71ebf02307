package main

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/toolhost/toolhost/plugins/fs/internal/trash"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// defaultBudget is the size of a result if the host sets none.
	defaultBudget = 16 * tool.KiB
	// defaultMaxRead is how much of a file is returned by default.
	defaultMaxRead = tool.MiB
)

// workspace is what one call may read and change, and the bounds of its result.
type workspace struct {
	*roots.Roots
	// budget is the maximum size of the text of the result in bytes.
	budget int
	// maxRead is the maximum size of one file's content in a result.
	maxRead int
	// userDir is the user's own directory outside the workspace; "" if there is none.
	userDir string
	// trashBounds are the bounds of the trash in userDir.
	trashBounds trash.Bounds
	// vaults are directories outside the workspace by name, and maxVault is the maximum
	// size of a file that is copied from them.
	vaults   map[string]string
	maxVault int64
	// dirs are the folders as the host named them.
	dirs []string
	// maxCounted is how many entries of a list are counted or sorted.
	maxCounted int
	// options are the options of the folders.
	options roots.Options
	// room bounds the memory of calls that hold whole files; nil means no bound.
	room *room
	// onClose is called in reverse order.
	onClose []func()
}

// Close releases the locks and closes everything.
func (w *workspace) Close() error {
	for _, f := range slices.Backward(w.onClose) {
		f()
	}
	w.onClose = nil
	return w.Roots.Close()
}

// The default maximum of the trash.
const (
	// The bounds of the trash by default.
	defaultTrashAge   = 30 * 24 * time.Hour
	defaultTrashSize  = tool.GiB
	defaultTrashItems = 1000
)

// settings are the plugin's block in the host's configuration.
type settings struct {
	MaxRead tool.ByteSize `json:"max_read,omitempty" jsonschema:"how much of one file read_file returns at most" default:"1MiB"`
	Secrets []string      `json:"secrets,omitempty" jsonschema:"no longer a setting: which files are sensitive is said by sensitive in the paths block of the policy"`
	Protect []string      `json:"protect,omitempty" jsonschema:"no longer a setting: which names are protected from changes is said by protect in the filesystem block of the plugin's sandbox"`

	TrashAge   time.Duration `json:"trash_age,omitempty" jsonschema:"how long a user's trash keeps a deleted item; each deletion enforces all bounds, and the last deleted item always stays" default:"720h"`
	TrashSize  tool.ByteSize `json:"trash_size,omitempty" jsonschema:"the maximum size of a user's trash" default:"1GiB"`
	TrashItems int           `json:"trash_items,omitempty" jsonschema:"the maximum number of items in a user's trash" default:"1000"`

	Vaults       map[string]string `json:"vaults,omitempty" jsonschema:"directories that vault_copyto copies from, by name: absolute, outside of the workspace, and listed under filesystem.read of the sandbox"`
	VaultMaxSize tool.ByteSize     `json:"vault_max_size,omitempty" jsonschema:"the maximum size of a file copied from a vault" default:"64MiB"`
}

// inWorkspace returns the function of a tool, from a function that takes the workspace of its
// call. The workspace is closed when that function returns.
func inWorkspace[In any](f *files, run func(context.Context, *workspace, In) (tool.Result, error)) func(context.Context, *sdk.Call, In) (tool.Result, error) {
	return func(ctx context.Context, c *sdk.Call, in In) (tool.Result, error) {
		w, err := f.open(c)
		if err != nil {
			return tool.Result{}, err
		}
		defer func() { _ = w.Close() }() // every write is durable already
		result, err := run(ctx, w, in)
		return result, w.suggest(ctx, explainMissing(err))
	}
}

// open opens the workspace of a call. The caller closes it.
func (f *files) open(c *sdk.Call) (*workspace, error) {
	r, err := roots.For(c, &f.shared)
	if err != nil {
		return nil, err
	}
	w := newWorkspace(r, c.Roots(), c.MaxOutput(), f.settings.Load())
	w.userDir, w.room = c.UserDir(), f.room
	return w, nil
}

// newWorkspace returns the workspace of the open folders r.
func newWorkspace(r *roots.Roots, dirs []string, budget tool.ByteSize, s *settings) *workspace {
	if s == nil {
		s = &settings{}
	}
	if budget <= 0 {
		budget = defaultBudget
	}
	maxRead := s.MaxRead
	if maxRead <= 0 {
		maxRead = defaultMaxRead
	}
	bounds := trash.Bounds{Age: cmp.Or(s.TrashAge, defaultTrashAge), Bytes: int64(cmp.Or(s.TrashSize, defaultTrashSize)), Items: cmp.Or(s.TrashItems, defaultTrashItems)}
	return &workspace{
		Roots: r, budget: int(budget), maxRead: int(maxRead), trashBounds: bounds,
		vaults: s.Vaults, maxVault: int64(cmp.Or(s.VaultMaxSize, defaultVaultSize)), dirs: dirs, options: r.Options(), maxCounted: maxCounted,
	}
}

// openTrash opens the trash of the call's user. It is closed with the workspace.
func (w *workspace) openTrash() (*trash.Trash, error) {
	t, err := trash.Open(w.userDir, w.options, w.trashBounds)
	if err != nil {
		return nil, err
	}
	w.onClose = append(w.onClose, t.Close)
	return t, nil
}
