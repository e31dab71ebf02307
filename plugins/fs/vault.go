package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// defaultVaultSize is the maximum size of a file from a vault by default.
const defaultVaultSize = 64 * tool.MiB

type vaultCopyArgs struct {
	Source    string `json:"source" jsonschema:"vault and path in it, such as letters/short.odt" alias:"from,src"`
	Dest      string `json:"dest" jsonschema:"new path" role:"path" alias:"to,destination"`
	Overwrite bool   `json:"overwrite,omitempty" jsonschema:"replace a file at dest"`
}

// lookIntoVault is the hint for finding a file.
const lookIntoVault = "name a directory of the vault as source to list its content"

// vaulted is a call of vault_copyto.
type vaulted struct {
	name         string // of the source, with its vault
	source, dest *roots.Target
	content      snapshot.Snapshot
	options      roots.MoveOptions
}

var _ change = (*vaulted)(nil)

// checkVaults refuses settings that cannot be vaults.
func checkVaults(vaults map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(vaults)) {
		if name == "" || strings.ContainsAny(name, "/\x00") || name == "." || name == ".." {
			return &sdk.SettingError{Path: []string{"vaults"}, Summary: fmt.Sprintf("%q is not a valid name for a vault; expected one without a slash", name)}
		}
		if dir := vaults[name]; !filepath.IsAbs(dir) {
			return &sdk.SettingError{Path: []string{"vaults", name}, Summary: fmt.Sprintf("the vault is at %q, expected an absolute path", dir)}
		}
	}
	return nil
}

// planVaultCopy plans a call of vault_copyto.
func planVaultCopy(ctx context.Context, w *workspace, in vaultCopyArgs) (change, error) {
	name, inside, err := w.vaultOf(in.Source)
	if err != nil {
		return nil, err
	}
	vault, err := w.openVault(name)
	if err != nil {
		return nil, err
	}
	c := &vaulted{name: path.Join(name, inside), options: roots.MoveOptions{Overwrite: in.Overwrite, Copy: true}}
	if c.source, err = c.find(w, vault, inside); err != nil {
		return nil, err
	}
	if c.dest, err = w.target(in.Dest, roots.TargetOptions{Parents: true}); err != nil {
		return nil, err
	}
	if err := w.lock(ctx, c.source, c.dest); err != nil {
		return nil, c.inVaultTerms(err)
	}
	info := c.source.Info()
	if info == nil || !info.Mode().IsRegular() {
		return nil, tool.Errorf(tool.Conflict, "%s was changed by another program at the same time", display.VisibleName(c.name)).WithHint("look at it again")
	}
	if info.Size() > w.maxVault {
		return nil, tool.Errorf(tool.ResourceExhausted, "%s has %d bytes, at most %d can be copied from a vault", display.VisibleName(c.name), info.Size(), w.maxVault).
			WithHint("the setting vault_max_size says so; ask the user to copy it")
	}
	if err := fits(c.dest, in.Dest, c.name, info.Mode()); err != nil {
		return nil, err
	}
	if err := c.source.Movable(ctx, c.dest, c.options); err != nil {
		return nil, c.inVaultTerms(err)
	}
	c.content, err = snapshot.Take(ctx, c.source, 0)
	return c, c.inVaultTerms(err)
}

// vaultOf returns the name of the vault and the path in it.
func (w *workspace) vaultOf(source string) (name, inside string, err error) {
	names := slices.Sorted(maps.Keys(w.vaults))
	if len(names) == 0 {
		return "", "", tool.Errorf(tool.Unavailable, "There is no vault").WithHint("the setting vaults of the plugin fs names vaults; ask the user for the file")
	}
	name, inside, _ = strings.Cut(source, "/")
	if _, ok := w.vaults[name]; !ok {
		return "", "", tool.Errorf(tool.NotFound, "There is no vault %q", name).
			WithHint("source begins with the name of a vault and a slash; there are: %s", display.VisibleName(strings.Join(names, ", ")))
	}
	if inside = path.Clean("./" + inside); inside == ".." || strings.HasPrefix(inside, "../") {
		return "", "", tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: %s", display.VisibleName(source)).WithHint("it is outside the vault")
	}
	return name, inside, nil
}

// openVault opens a vault. It is closed with the workspace.
func (w *workspace) openVault(name string) (*roots.Roots, error) {
	unavailable := tool.Errorf(tool.Unavailable, "The vault %s cannot be opened", display.VisibleName(name)).
		WithHint("it must be a directory outside of the workspace that the sandbox of the plugin fs lists under filesystem.read; ask the user")
	vault, err := roots.Open([]string{w.vaults[name]}, w.options)
	if err != nil {
		return nil, unavailable.WithCause(err)
	}
	w.onClose = append(w.onClose, func() { _ = vault.Close() }) // nothing is written to it
	dir, err := filepath.EvalSymlinks(w.vaults[name])
	if err != nil {
		return nil, unavailable.WithCause(err)
	}
	for _, folder := range w.dirs {
		real, err := filepath.EvalSymlinks(folder)
		if err != nil || within(dir, real) || within(real, dir) {
			return nil, unavailable.WithCause(err)
		}
	}
	return vault, nil
}

// within reports whether a path is the directory or below it.
func within(dir, abs string) bool {
	return abs == dir || strings.HasPrefix(abs, strings.TrimSuffix(dir, "/")+"/")
}

// find opens the file in the vault. It refuses links.
func (c *vaulted) find(w *workspace, vault *roots.Roots, inside string) (*roots.Target, error) {
	shown := display.VisibleName(c.name)
	root, err := vault.Target(".", roots.TargetOptions{Read: true})
	if err != nil {
		return nil, c.inVaultTerms(err)
	}
	defer root.Close()
	t, err := vault.Target(inside, roots.TargetOptions{Read: true})
	if err != nil {
		return nil, c.inVaultTerms(err)
	}
	w.onClose = append(w.onClose, t.Close)
	info := t.Info()
	switch {
	case info == nil:
		return nil, tool.Errorf(tool.NotFound, "File not found: %s", shown).WithHint("%s", lookIntoVault)
	case t.Identity() != path.Join(root.Identity(), inside), info.Mode().Type() == fs.ModeSymlink:
		return nil, tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: %s", shown).
			WithHint("a symbolic link leads there; only files of the vault itself are copied")
	case info.IsDir():
		return nil, tool.Errorf(tool.InvalidArgument, "%s is a directory, expected a file in it", shown).
			WithHint("in it there are:\n%s", vaultNames(vault, inside))
	case !info.Mode().IsRegular():
		return nil, tool.Errorf(tool.Failed, "Failed to read file: %s is a %s, not a regular file", shown, roots.Kind(info.Mode()))
	default:
		return t, nil
	}
}

// vaultNames lists a directory of a vault by name and size.
func vaultNames(vault *roots.Roots, inside string) string {
	const most = 100
	dir, err := vault.OpenDir(inside, nil)
	if err != nil {
		return "[the directory cannot be read]"
	}
	defer func() { _ = dir.Close() }() // nothing was written to it
	entries, err := dir.Read(nil)
	if err != nil && len(entries) == 0 {
		return "[the directory cannot be read]"
	}
	slices.SortFunc(entries, func(a, b roots.DirEntry) int { return strings.Compare(a.Name, b.Name) })
	var lines []string
	for _, entry := range entries[:min(len(entries), most)] {
		if info, err := dir.Info(entry.Name); err == nil {
			lines = append(lines, snapshot.Listed(entry.Name, info.Mode, info.Size))
		}
	}
	if len(entries) > most {
		lines = append(lines, fmt.Sprintf("[%d of %d]", most, len(entries)))
	}
	return strings.Join(lines, "\n")
}

// inVaultTerms rewrites an error so that it names no folder of the host.
func (c *vaulted) inVaultTerms(err error) error {
	var told *tool.Error
	if !errors.As(err, &told) {
		return err
	}
	if told.Code == tool.NotFound {
		return tool.Errorf(tool.NotFound, "File not found: %s", display.VisibleName(c.name)).WithCause(err).WithHint("%s", lookIntoVault)
	}
	if told.Code == tool.PermissionDenied {
		return tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: %s", display.VisibleName(c.name)).WithCause(err).
			WithHint("it is outside the vault, or a file of this name usually holds secrets or is protected")
	}
	return told
}

func (c *vaulted) State(ctx context.Context) (string, error) {
	replaced, err := snapshot.Take(ctx, c.dest, 0)
	if err != nil {
		return "", err
	}
	return stateOf("vault_copyto", c.source.Identity(), c.content.State(), c.dest.Identity(), replaced.State()), nil
}

// facts returns all that a model learns about the content.
func (c *vaulted) facts() string {
	if c.content.Hash == "" {
		return display.Plural(int(c.content.Size), "byte")
	}
	return fmt.Sprintf("%s, %s", display.Plural(int(c.content.Size), "byte"), c.content.Hash)
}

func (c *vaulted) Show(ctx context.Context) (string, []tool.Content, error) {
	dest := display.VisibleName(c.dest.String())
	summary := fmt.Sprintf("Copies %s of a vault to %s", display.VisibleName(c.name), dest)
	replaced, err := snapshot.Take(ctx, c.dest, 0)
	if err != nil {
		return "", nil, err
	}
	text := fmt.Sprintf("new: %s\nNothing is replaced.", c.facts())
	if replaced.Exists {
		summary += ", replacing the existing file"
		text = fmt.Sprintf("new: %s\n%s is replaced, and cannot be restored.\nold: %s", c.facts(), dest, replaced.Describe())
	}
	return summary, []tool.Content{tool.Text(text + "\nEveryone who can read the workspace can then read it.")}, nil
}

func (c *vaulted) Apply(ctx context.Context) (tool.Result, error) {
	path, operation := c.dest.String(), arrival(c.dest)
	if err := c.source.MoveTo(ctx, c.dest, c.options); err != nil {
		return tool.Result{}, c.inVaultTerms(err)
	}
	result := tool.TextResult(fmt.Sprintf("Copied %s to %s (%s)", display.VisibleName(c.name), display.VisibleName(path), c.facts()))
	result.Metadata = map[string]any{"source": c.name, "path": path, "bytes": c.content.Size, "replaced": operation == updated}
	if c.content.Hash != "" {
		result.Metadata["hash"] = c.content.Hash
	}
	result.Effects = []tool.Effect{changed(path, operation)}
	return result, nil
}
