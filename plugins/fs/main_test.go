package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The test binary is the plugin, or what is killed, when it is told so.
func TestMain(m *testing.M) {
	if how := os.Getenv("FS_CRASH"); how != "" {
		fmt.Fprintln(os.Stderr, crashing(how, strings.Split(os.Getenv("FS_CRASH_DIRS"), ":")))
		os.Exit(1)
	}
	if os.Getenv("FS_AS_PLUGIN") != "" {
		if limit, err := strconv.ParseUint(os.Getenv("FS_FILE_SIZE"), 10, 64); err == nil {
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
				panic(err)
			}
		}
		if limit, err := strconv.ParseUint(os.Getenv("FS_OPEN_FILES"), 10, 64); err == nil {
			if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
				panic(err)
			}
		}
		newPlugin().Serve()
	}
	os.Exit(m.Run())
}

// TestProcess calls the plugin in a process of its own.
func TestProcess(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "hello\n"})
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
	all := map[string]property{}
	for _, spec := range newPlugin().Tools() {
		var root property
		if err := json.Unmarshal(spec.InputSchema, &root); err != nil {
			t.Fatal(err)
		}
		root.collect(spec.Name, all)
	}
	tested := map[string]bool{}
	for _, c := range slices.Concat(
		readFileCases(), readFilesCases(), listDirectoryCases(), searchFilesCases(), searchContentCases(), fileInfoCases(), diffFilesCases(),
	) {
		noteTested(all, tested, c.tool, json.RawMessage(asJSON(t, c.in)))
	}
	for _, c := range slices.Concat(writeFileCases(), editFileCases(), applyPatchCases(), createDirectoryCases(), moveCases(), deleteCases()) {
		noteTested(all, tested, c.tool, json.RawMessage(asJSON(t, c.in)))
	}
	noteTested(all, tested, "delete_file", json.RawMessage(asJSON(t, deleteFileArgs{Path: "dir", Recursive: true})))
	for _, in := range restoreFileCalls("some id") {
		noteTested(all, tested, "restore_file", json.RawMessage(asJSON(t, in)))
	}
	for _, in := range vaultCopyCalls() {
		noteTested(all, tested, "vault_copyto", json.RawMessage(asJSON(t, in)))
	}
	for path, property := range all {
		if !tested[path] {
			t.Errorf("no test sets %s to another value than its default (%s)", path, property.Default)
		}
	}
}

// noteTested notes which properties in value, an object or a list of objects,
// are not their default.
func noteTested(all map[string]property, tested map[string]bool, path string, value json.RawMessage) {
	var items []json.RawMessage
	if json.Unmarshal(value, &items) == nil {
		for _, item := range items {
			noteTested(all, tested, path+"[]", item)
		}
		return
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(value, &object) != nil {
		return
	}
	for name, inner := range object {
		name = path + "." + name
		if !bytes.Equal(inner, all[name].Default) {
			tested[name] = true
		}
		noteTested(all, tested, name, inner)
	}
}

// property is what the test reads of a schema.
type property struct {
	Default    json.RawMessage     `json:"default"`
	Properties map[string]property `json:"properties"`
	Items      *property           `json:"items"`
}

// collect adds all properties of a schema by their path.
func (p property) collect(path string, all map[string]property) {
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		inner := p.Properties[name]
		all[path+"."+name] = inner
		inner.collect(path+"."+name, all)
	}
	if p.Items != nil {
		p.Items.collect(path+"[]", all)
	}
}

// The plugin keeps the contract, in this process and in one of its own.
func TestContract(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "hello\n", "b.txt": "world\n"})
	options := sdktest.Options{
		Env:     []string{"FS_AS_PLUGIN=1"},
		Context: tool.Context{Roots: []string{dir}, MaxOutput: 64 * tool.KiB},
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
		},
	}
	t.Run("in process", func(t *testing.T) { sdktest.Run(t, newPlugin(), options) })
	t.Run("binary", func(t *testing.T) { sdktest.RunBinary(t, os.Args[0], options) })
}
