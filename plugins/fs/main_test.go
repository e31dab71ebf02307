package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
	"github.com/toolhost/toolhost/sdk/worker"
)

// The test binary becomes the plugin, or the process to kill, if its environment says so.
func TestMain(m *testing.M) {
	worker.Serve(functions())
	if how := os.Getenv("FS_CRASH"); how != "" {
		fmt.Fprintln(os.Stderr, crashing(how, strings.Split(os.Getenv("FS_CRASH_DIRS"), ":")))
		os.Exit(1)
	}
	if dir, other, ok := strings.Cut(os.Getenv("FS_FAULTS"), ":"); ok {
		if err := faultyProcess(dir, other); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv("FS_AS_PLUGIN") != "" {
		newPlugin().Serve()
	}
	os.Exit(m.Run())
}

// TestProcess calls the plugin in a separate process.
func TestProcess(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"a.txt": "hello\n"})
	p := sdktest.StartBinary(t, os.Args[0], sdktest.Options{
		Env: []string{"FS_AS_PLUGIN=1"}, Context: tool.Context{Roots: []string{dir}, MaxOutput: tool.MiB},
	})
	got := p.Call(t.Context(), "read_file", readFileArgs{Path: "a.txt"})
	if got.Text() != "hello\n" {
		t.Errorf("read_file = %q, %v, want %q", got.Text(), got.Error, "hello\n")
	}
}

// Every property of every tool is set, by some test, to another value than its
// default.
func TestEveryPropertyIsTested(t *testing.T) {
	calls := []sdktest.Call{{Tool: "delete_file", Args: deleteFileArgs{Path: "dir", Recursive: true}}}
	for _, c := range slices.Concat(
		readFileCases(), readFilesCases(), listDirectoryCases(), searchFilesCases(), searchContentCases(), fileInfoCases(), diffFilesCases(),
	) {
		calls = append(calls, sdktest.Call{Tool: c.tool, Args: c.in})
	}
	for _, c := range slices.Concat(writeFileCases(), editFileCases(), editFilesCases(), applyPatchCases(), createDirectoryCases(), moveCases(), deleteCases()) {
		calls = append(calls, sdktest.Call{Tool: c.tool, Args: c.in})
	}
	for _, in := range restoreFileCalls("some id") {
		calls = append(calls, sdktest.Call{Tool: "restore_file", Args: in})
	}
	for _, in := range vaultCopyCalls() {
		calls = append(calls, sdktest.Call{Tool: "vault_copyto", Args: in})
	}
	p := newPlugin()
	addVaults(p, &files{}, true)
	untested, err := sdktest.Untested(p.Tools(), calls)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range untested {
		t.Errorf("no test sets %s to another value than its default", path)
	}
}

// The plugin keeps the contract, in this process and in a separate one.
func TestContract(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"a.txt": "hello\n", "b.txt": "world\n"})
	vault := filetest.Tree(t, map[string]string{"short.txt": "Dear all\n"})
	options := sdktest.Options{
		Env:      []string{"FS_AS_PLUGIN=1"},
		Context:  tool.Context{Roots: []string{dir}, MaxOutput: 64 * tool.KiB, UserDir: t.TempDir()},
		Settings: settings{Vaults: map[string]string{"letters": vault}},
		Calls: []sdktest.Call{
			{Tool: "read_file", Args: readFileArgs{Path: "a.txt"}},
			{Tool: "read_files", Args: readFilesArgs{Items: []readFilesItem{{Path: "a.txt"}, {Path: "b.txt"}}}},
			{Tool: "list_directory"},
			{Tool: "search_files", Args: searchFilesArgs{Pattern: "*"}},
			{Tool: "search_content", Args: searchContentArgs{Pattern: "l"}},
			{Tool: "file_info", Args: fileInfoArgs{Path: "a.txt"}},
			{Tool: "diff_files", Args: diffFilesArgs{Path: "a.txt", Other: "b.txt"}},
			{Tool: "write_file", Args: writeFileArgs{Path: "new.txt", Content: "new\n"}},
			{Tool: "edit_file", Args: map[string]any{"path": "a.txt", "old": "hello", "new": "hallo", "dry_run": true}},
			{Tool: "apply_patch", Args: applyPatchArgs{Patch: begin("*** Update File: b.txt\n@@\n+more\n*** End of File\n")}},
			{Tool: "create_directory", Args: createDirectoryArgs{Path: "dir"}},
			{Tool: "copy_file", Args: moveArgs{Source: "a.txt", Dest: "copy.txt", Overwrite: true}},
			{Tool: "move_file", Args: moveArgs{Source: "copy.txt", Dest: "moved.txt", Overwrite: true}},
			{Tool: "delete_file", Args: deleteFileArgs{Path: "moved.txt"}},
			{Tool: "restore_file", Args: restoreFileArgs{List: true}},
			{Tool: "restore_file", Args: restoreFileArgs{Path: "moved.txt", Overwrite: true}},
			{Tool: "vault_copyto", Args: vaultCopyArgs{Source: "letters/short.txt", Dest: "letter.txt", Overwrite: true}},
		},
	}
	t.Run("in process", func(t *testing.T) { sdktest.Run(t, newPlugin(), options) })
	t.Run("binary", func(t *testing.T) { sdktest.RunBinary(t, os.Args[0], options) })
}
