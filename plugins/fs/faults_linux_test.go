package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/edit"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// faultCase is a change during which the disk fails.
type faultCase struct {
	name string
	// plan plans the change; other is a workspace on another file system.
	plan func(ctx context.Context, w *workspace, other string) (change, error)
	// want is the result for files that differ from faultyFiles: "" means that the file is gone.
	want map[string]string
	// syncs is how often the change makes something durable: each file or tree that it writes,
	// and each directory in which a name appears or disappears.
	syncs int
	// trashAcross says that the trash is on the other file system.
	trashAcross bool
}

// faultyLong is the content of a file that is not written in one piece.
var faultyLong = strings.Repeat("0123456789abcde\n", 8<<10)

func faultyFiles() map[string]string {
	return map[string]string{"ws/a": faultyLong, "ws/b": "b\n", "ws/d/": "", "ws/d/c": "c\n"}
}

func faultCases() []faultCase {
	return []faultCase{
		{
			name: "write_file", syncs: 2, want: map[string]string{"ws/a": "new\n" + faultyLong},
			plan: func(ctx context.Context, w *workspace, _ string) (change, error) {
				return planWrite(ctx, w, writeFileArgs{Path: "a", Content: "new\n" + faultyLong})
			},
		},
		{
			name: "write_file that appends", syncs: 2, want: map[string]string{"ws/a": faultyLong + "more\n"},
			plan: func(ctx context.Context, w *workspace, _ string) (change, error) {
				return planWrite(ctx, w, writeFileArgs{Path: "a", Content: "more\n", Mode: "append"})
			},
		},
		{
			name: "write_file of a new file", syncs: 4, want: map[string]string{"ws/x/": "", "ws/x/y/": "", "ws/x/y/z": faultyLong},
			plan: func(ctx context.Context, w *workspace, _ string) (change, error) {
				return planWrite(ctx, w, writeFileArgs{Path: "x/y/z", Content: faultyLong})
			},
		},
		{
			name: "edit_file", syncs: 2, want: map[string]string{"ws/b": "B\n"},
			plan: func(ctx context.Context, w *workspace, _ string) (change, error) {
				return planEdit(ctx, w, editFileArgs{Path: "b", Edits: []fileEdit{{Replacement: edit.Replacement{Old: "b", New: "B"}}}})
			},
		},
		{
			name: "apply_patch", syncs: 14, want: map[string]string{"ws/b": "B\n", "ws/x/": "", "ws/x/new": "x\n", "ws/d/c": gone},
			plan: func(ctx context.Context, w *workspace, _ string) (change, error) {
				patch := begin("*** Update File: b\n@@\n-b\n+B\n", "*** Add File: x/new\n+x\n", "*** Delete File: d/c\n")
				return planPatch(ctx, w, applyPatchArgs{Patch: patch})
			},
		},
		{
			name: "create_directory", syncs: 2, want: map[string]string{"ws/x/": "", "ws/x/y/": ""},
			plan: func(ctx context.Context, w *workspace, _ string) (change, error) {
				return planDirectory(ctx, w, createDirectoryArgs{Path: "x/y"})
			},
		},
		{
			name: "copy_file", syncs: 2, want: map[string]string{"ws/b": faultyLong},
			plan: func(ctx context.Context, w *workspace, _ string) (change, error) {
				return planCopy(ctx, w, moveArgs{Source: "a", Dest: "b", Overwrite: true})
			},
		},
		{
			name: "copy_file of a directory", syncs: 2, want: map[string]string{"ws/e/": "", "ws/e/c": "c\n"},
			plan: func(ctx context.Context, w *workspace, _ string) (change, error) {
				return planCopy(ctx, w, moveArgs{Source: "d", Dest: "e"})
			},
		},
		{
			name: "move_file", syncs: 2, want: map[string]string{"ws/d/": gone, "ws/d/c": gone, "ws/e/": "", "ws/e/c": "c\n"},
			plan: func(ctx context.Context, w *workspace, _ string) (change, error) {
				return planMove(ctx, w, moveArgs{Source: "d", Dest: "e"})
			},
		},
		{
			name: "move_file to another file system", syncs: 3, want: map[string]string{"ws/d/": gone, "ws/d/c": gone, "other/e/": "", "other/e/c": "c\n"},
			plan: func(ctx context.Context, w *workspace, other string) (change, error) {
				return planMove(ctx, w, moveArgs{Source: "d", Dest: other + "/e"})
			},
		},
		{
			name: "delete_file", syncs: 6, want: map[string]string{"ws/d/": gone, "ws/d/c": gone},
			plan: func(ctx context.Context, w *workspace, _ string) (change, error) {
				return planDelete(ctx, w, deleteFileArgs{Path: "d", Recursive: true})
			},
		},
		{
			name: "delete_file to another file system", syncs: 7, want: map[string]string{"ws/d/": gone, "ws/d/c": gone}, trashAcross: true,
			plan: func(ctx context.Context, w *workspace, _ string) (change, error) {
				return planDelete(ctx, w, deleteFileArgs{Path: "d", Recursive: true})
			},
		},
		{
			name: faultControl, want: map[string]string{"ws/a": "new\n" + faultyLong},
			plan: func(_ context.Context, w *workspace, _ string) (change, error) {
				return nil, os.WriteFile(filepath.Join(w.dirs[0], "a"), []byte("new\n"+faultyLong), 0o600)
			},
		},
	}
}

const (
	// gone means that there is no file.
	gone = "\x00gone"
	// faultControl is the case that writes a file in place.
	faultControl = "control"
)

// faultyProcess makes the changes that it reads from standard input, one in a line, and writes
// the outcome of each. dirs are ws, other and user for the workspaces and the trash.
func faultyProcess(dir, other string) error {
	listener, err := submit()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(os.Stdout, listener); err != nil {
		return err
	}
	cases := faultCases()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		at := slices.IndexFunc(cases, func(c faultCase) bool { return c.name == lines.Text() })
		how, err := json.Marshal(outcome(makeFaulty(cases[at], dir, other)))
		if err == nil {
			_, err = fmt.Fprintln(os.Stdout, string(how))
		}
		if err != nil {
			return err
		}
	}
	return lines.Err()
}

func outcome(err error) string {
	if err == nil {
		return ""
	}
	told := tool.AsError(err)
	return string(told.Code) + ": " + told.Message
}

func makeFaulty(tt faultCase, dir, other string) error {
	ctx := context.Background()
	f := &files{}
	w, err := openWorkspace([]string{filepath.Join(dir, "ws"), filepath.Join(other, "other")}, roots.Options{Shared: &f.shared}, tool.MiB, nil)
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }() // as in the plugin
	w.userDir = filepath.Join(dir, "user")
	if tt.trashAcross {
		w.userDir = filepath.Join(other, "user")
	}
	c, err := tt.plan(ctx, w, filepath.Join(other, "other"))
	if err == nil && c != nil {
		_, err = c.Apply(ctx)
	}
	return err
}

// startFaulty starts a process whose system calls the injector makes fail.
func startFaulty(t *testing.T, dir, other string) (in *injector, do func(name string) (how string)) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	// Signals would restart system calls, which would then be counted twice.
	cmd.Env = []string{"FS_FAULTS=" + dir + ":" + other, "GODEBUG=asyncpreemptoff=1"}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	listener := 0
	if _, scanErr := fmt.Sscan(line, &listener); err != nil || scanErr != nil {
		t.Fatalf("the process answered %q: %v", line, errors.Join(err, scanErr))
	}
	in, err = inject(cmd.Process.Pid, listener, []string{dir, other})
	if err != nil {
		_ = cmd.Process.Kill()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		if err := errors.Join(cmd.Wait(), in.wait()); err != nil {
			t.Error(err)
		}
	})
	return in, func(name string) (how string) {
		t.Helper()
		_, err := io.WriteString(stdin, name+"\n")
		line, readErr := lines.ReadBytes('\n')
		if err := errors.Join(err, readErr, json.Unmarshal(line, &how)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return how
	}
}

// faultScene is the files of one change.
type faultScene struct{ dir, other string }

// reset restores the files as they were before the change.
func (s faultScene) reset(t *testing.T) {
	t.Helper()
	var errs []error
	for _, dir := range []string{"/ws", "/user"} {
		errs = append(errs, os.RemoveAll(s.dir+dir), os.MkdirAll(s.dir+dir, 0o755))
	}
	for _, dir := range []string{"/other", "/user"} {
		errs = append(errs, os.RemoveAll(s.other+dir), os.MkdirAll(s.other+dir, 0o755))
	}
	for name, content := range faultyFiles() {
		path := filepath.Join(s.dir, name)
		errs = append(errs, os.MkdirAll(filepath.Dir(path), 0o755))
		if !strings.HasSuffix(name, "/") {
			errs = append(errs, os.WriteFile(path, []byte(content), 0o600))
		}
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// look returns the files of the workspaces, those of the trash, and the
// temporary ones.
func (s faultScene) look(t *testing.T) (files, trashed map[string]string, left []string) {
	t.Helper()
	files, trashed = map[string]string{}, map[string]string{}
	for _, dir := range []string{s.dir, s.other} {
		for name, content := range contents(t, dir) {
			switch top, rest, _ := strings.Cut(name, "/"); {
			case strings.Contains(name, ".toolhost-"):
				left = append(left, name)
			case rest == "":
			case top == "user":
				trashed[rest] = content
			default:
				files[name] = content
			}
		}
	}
	return files, trashed, left
}

// after is the files of the workspaces when the change is made.
func (tt faultCase) after() map[string]string {
	files := faultyFiles()
	maps.Copy(files, tt.want)
	maps.DeleteFunc(files, func(_, content string) bool { return content == gone })
	return files
}

// broken describes the damage to the files after system calls have failed.
func (tt faultCase) broken(t *testing.T, scene faultScene, how string, failed []string, lasting bool) error {
	t.Helper()
	before, after := faultyFiles(), tt.after()
	files, trashed, left := scene.look(t)
	admissions := []string{"is changed, but the disk has not confirmed it", "could not be put back", "could not be removed from where it was"}
	admitted := slices.ContainsFunc(admissions, func(part string) bool { return strings.Contains(how, part) })
	for name, content := range files {
		if was, now := before[name], after[name]; content != was && content != now {
			return fmt.Errorf("%s has %d bytes, and is neither the old nor the new one", name, len(content))
		}
	}
	for name, content := range before {
		_, stays := after[name]
		_, is := files[name]
		kept := slices.Contains(slices.Collect(maps.Values(files)), content) || slices.Contains(slices.Collect(maps.Values(trashed)), content)
		if !is && stays || !kept && !strings.HasSuffix(name, "/") && tt.want[name] == gone {
			return fmt.Errorf("%s is lost", name)
		}
	}
	if !lasting && len(left) > 0 && failed[0] != "unlink" {
		return fmt.Errorf("%q was left", left)
	}
	if lasting && how != "" && !admitted { // not even a directory that was made for the change can be removed
		maps.DeleteFunc(files, func(name, _ string) bool {
			_, was := before[name]
			return !was && strings.HasSuffix(name, "/")
		})
	}
	switch {
	case cmp.Equal(files, after):
		if how != "" && !admitted {
			return errors.New("the change is made, which the error does not say")
		}
	case how == "":
		return errors.New("no error says that the change is not made")
	case !cmp.Equal(files, before) && !admitted:
		return fmt.Errorf("the change is half made, which the error does not say: %s", cmp.Diff(before, files))
	case !cmp.Equal(files, before) && !lasting && !strings.Contains(tt.name, "another file system"):
		return fmt.Errorf("the change is half made: %s", cmp.Diff(before, files))
	}
	return nil
}
