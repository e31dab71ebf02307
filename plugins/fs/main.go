// Command fs is a plugin that lets an agent read, search and change files: those
// below the workspace's folders and no others.
package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/plugins/fs/internal/thumbnail"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/pdf"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
	"github.com/toolhost/toolhost/sdk/worker"
)

// maxOutput is the size of a result that clients show to a model as a whole.
const maxOutput = 40 * tool.KiB

// treeTimeout is how long a call may take that copies, moves or deletes a directory.
const treeTimeout = 5 * time.Minute

func main() {
	worker.Serve(functions()) // does not return in a process that reads one document
	newPlugin().Serve()
}

// functions returns the functions that run in processes of their own.
func functions() map[string]worker.Function {
	all := map[string]worker.Function{}
	pdf.AddFunction(all)
	thumbnail.AddFunction(all)
	return all
}

// newPlugin returns the plugin with all its tools.
func newPlugin() *sdk.Plugin {
	p := sdk.New("fs", "1.0.0")
	f := &files{room: newRoom()}
	sdk.Configure(p, func(ctx context.Context, cfg sdk.Config, s settings) error {
		if err := f.configure(ctx, cfg, s); err != nil {
			return err
		}
		addVaults(p, f, len(s.Vaults) > 0)
		return nil
	})
	add(p, f, readFile, tool.Spec{Name: "read_file", Core: true, Aliases: []string{"file_read", "Read"}, MaxOutput: maxOutput})
	add(p, f, readFiles, tool.Spec{Name: "read_files", MaxOutput: maxOutput})
	add(p, f, listDirectory, tool.Spec{Name: "list_directory", Core: true, Aliases: []string{"list_files", "file_list", "LS"}, MaxOutput: maxOutput})
	add(p, f, searchFiles, tool.Spec{Name: "search_files", Core: true, Aliases: []string{"find", "Glob"}, MaxOutput: maxOutput})
	add(p, f, searchContent, tool.Spec{Name: "search_content", Core: true, Aliases: []string{"file_search", "Grep"}, MaxOutput: maxOutput})
	add(p, f, fileInfo, tool.Spec{Name: "file_info", SearchHint: "stat", MaxOutput: 16 * tool.KiB})
	add(p, f, diffFiles, tool.Spec{Name: "diff_files", MaxOutput: maxOutput})
	addChange(p, f, planWrite, tool.Spec{Name: "write_file", Core: true, Aliases: []string{"file_write", "Write"}, Tier: tool.SideEffecting, Destructive: true})
	addChange(p, f, planEdit, tool.Spec{
		Name: "edit_file", Core: true, Aliases: []string{"file_edit", "Edit"}, Tier: tool.SideEffecting, Destructive: true, MaxOutput: maxOutput,
		TierWhen: []tool.TierRule{{Property: "dry_run", Equals: json.RawMessage("true"), Tier: tool.ReadOnly}},
	})
	addChange(p, f, planPatch, tool.Spec{
		Name: "apply_patch", Tier: tool.SideEffecting, Destructive: true, MaxOutput: maxOutput,
		TierWhen: []tool.TierRule{{Property: "dry_run", Equals: json.RawMessage("true"), Tier: tool.ReadOnly}},
	})
	addChange(p, f, planDirectory, tool.Spec{Name: "create_directory", Tier: tool.SideEffecting, Idempotent: true})
	addChange(p, f, planCopy, tool.Spec{Name: "copy_file", Tier: tool.SideEffecting, Destructive: true, Timeout: treeTimeout})
	addChange(p, f, planMove, tool.Spec{Name: "move_file", Tier: tool.SideEffecting, Destructive: true, Timeout: treeTimeout})
	addChange(p, f, planDelete, tool.Spec{Name: "delete_file", Aliases: []string{"file_delete"}, Tier: tool.Privileged, Destructive: true, Timeout: treeTimeout})
	addChange(p, f, planRestore, tool.Spec{
		Name: "restore_file", Tier: tool.SideEffecting, Destructive: true, Timeout: treeTimeout,
		TierWhen: []tool.TierRule{{Property: "list", Equals: json.RawMessage("true"), Tier: tool.ReadOnly}},
	})
	return p
}

// addVaults adds the tool that needs vaults.
func addVaults(p *sdk.Plugin, f *files, configured bool) {
	spec := tool.Spec{Name: "vault_copyto", Tier: tool.SideEffecting, Destructive: true}
	if !configured {
		spec.Unavailable = `no vaults are configured; the administrator adds vaults = { NAME = "/absolute/directory" } to the config block of the fs plugin, ` +
			`and the directory to read in the filesystem block of its sandbox`
	}
	addChange(p, f, planVaultCopy, spec)
}

// add adds a tool that reads. Its description is the file with its name.
func add[In any](p *sdk.Plugin, f *files, run func(context.Context, *workspace, In) (tool.Result, error), spec tool.Spec) {
	spec.Category = "files"
	spec.Tier = tool.ReadOnly
	spec.Idempotent = true
	spec.Description = sdk.Description(descriptions, spec.Name)
	sdk.AddTool(p, spec, inWorkspace(f, run))
}

//go:embed descriptions
var descriptions embed.FS

// files is the state that the tools share: the settings, and the locks of files.
type files struct {
	shared   roots.Shared
	settings atomic.Pointer[settings]
	room     *room
}

// configure stores the settings. The host sends them before the first call.
func (f *files) configure(_ context.Context, _ sdk.Config, s settings) error {
	if s.MaxRead <= 0 {
		return &sdk.SettingError{Path: []string{"max_read"}, Summary: fmt.Sprintf("max_read is %v, expected more than 0", s.MaxRead)}
	}
	if s.Secrets != nil {
		return &sdk.SettingError{Path: []string{"secrets"}, Summary: `secrets is no longer a setting: for all plugins, write sensitive = ["default", ...] in the paths block of the policy`}
	}
	if s.Protect != nil {
		return &sdk.SettingError{Path: []string{"protect"}, Summary: `protect is no longer a setting: write protect = ["git", ...] in the filesystem block of the plugin's sandbox`}
	}
	if err := checkVaults(s.Vaults); err != nil {
		return err
	}
	switch {
	case s.VaultMaxSize <= 0:
		return &sdk.SettingError{Path: []string{"vault_max_size"}, Summary: fmt.Sprintf("vault_max_size is %v, expected more than 0", s.VaultMaxSize)}
	case s.TrashAge <= 0:
		return &sdk.SettingError{Path: []string{"trash_age"}, Summary: fmt.Sprintf("trash_age is %v, expected more than 0", s.TrashAge)}
	case s.TrashSize <= 0:
		return &sdk.SettingError{Path: []string{"trash_size"}, Summary: fmt.Sprintf("trash_size is %v, expected more than 0", s.TrashSize)}
	case s.TrashItems <= 0:
		return &sdk.SettingError{Path: []string{"trash_items"}, Summary: fmt.Sprintf("trash_items is %d, expected more than 0", s.TrashItems)}
	}
	f.settings.Store(&s)
	return nil
}
