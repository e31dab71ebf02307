package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/plugins/fs/internal/edit"
	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// crashSize is the size of the files of the crash test: large enough to be
// killed while they are written.
const crashSize = 1 << 20

// crashContent is a file of the crash test; letter makes it one of two.
func crashContent(letter string) string {
	line := strings.Repeat("-", 63) + "\n"
	half := strings.Repeat(line, crashSize/len(line)/2)
	return half + "value: " + letter + "\n" + half
}

// crashing is the work of the killed process: it changes a file in the first directory from one
// content to the other and back, endlessly. A patch changes another with it; a move takes it to
// the second directory and back.
func crashing(how string, dirs []string) error {
	f := &files{}
	letters := []string{"a", "b"}
	for n := 1; ; n++ {
		was, now := letters[(n+1)%2], letters[n%2]
		w, err := openWorkspace(dirs, roots.Options{Shared: &f.shared}, tool.MiB, nil)
		if err != nil {
			return err
		}
		var c change
		ctx := context.Background()
		switch how {
		case "write_file":
			c, err = planWrite(ctx, w, writeFileArgs{Path: "f", Content: crashContent(now)})
		case "edit_file":
			c, err = planEdit(ctx, w, editFileArgs{Path: "f", Edits: []fileEdit{{Replacement: edit.Replacement{Old: "value: " + was, New: "value: " + now}}}})
		case "apply_patch":
			hunk := fmt.Sprintf("@@\n-value: %s\n+value: %s\n", was, now)
			c, err = planPatch(ctx, w, applyPatchArgs{Patch: begin("*** Update File: f\n"+hunk, "*** Update File: g\n"+hunk)})
		case "move_file":
			here, there := filepath.Join(dirs[(n+1)%2], "f"), filepath.Join(dirs[n%2], "f")
			c, err = planMove(ctx, w, moveArgs{Source: here, Dest: there})
		case "control":
			err = os.WriteFile(filepath.Join(dirs[0], "f"), []byte(crashContent(now)), 0o600)
		}
		if err == nil && c != nil {
			_, err = c.Apply(ctx)
		}
		if err := errors.Join(err, w.Close()); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(os.Stdout, n); err != nil {
			return err
		}
	}
}

// killed lets a process change the files, kills it at some moment, or as soon as
// a temporary file is seen, and returns how many temporary files it has left.
func killed(t *testing.T, how string, onSight bool, dirs ...string) (left int) {
	t.Helper()
	earlier := temporaries(t, dirs...)
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{"FS_CRASH=" + how, "FS_CRASH_DIRS=" + strings.Join(dirs, ":")}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%s did nothing: %v", how, err)
	}
	// Not to wait for anything: any moment will do.
	moment := time.After(time.Duration(rand.Int64N(int64(15 * time.Millisecond))))
	if onSight {
		moment = time.After(5 * time.Second)
	}
	look := time.NewTicker(10 * time.Microsecond)
	defer look.Stop()
	for due := false; !due && (!onSight || len(temporaries(t, dirs...)) == 0); {
		select {
		case <-moment:
			due = true
		case <-look.C:
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if state, err := cmd.Process.Wait(); err != nil || state.ExitCode() >= 0 {
		t.Fatalf("%s has ended by itself: %v, %v", how, state, err)
	}
	for _, path := range temporaries(t, dirs...) {
		if !slices.Contains(earlier, path) {
			left++
		}
	}
	return left
}

// wholeIn returns which of the two contents a file in one of the directories has; "" if no file
// exists. Anything else is an error.
func wholeIn(t *testing.T, name string, dirs ...string) (letters string) {
	t.Helper()
	for _, dir := range dirs {
		data, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			t.Fatal(err)
		case string(data) == crashContent("a"):
			letters += "a"
		case string(data) == crashContent("b"):
			letters += "b"
		default:
			t.Fatalf("%s has %d bytes and is neither the old nor the new one", name, len(data))
		}
	}
	return letters
}

func temporaries(tb testing.TB, dirs ...string) []string {
	tb.Helper()
	var all []string
	for _, dir := range dirs {
		found, err := filepath.Glob(filepath.Join(dir, ".toolhost-*"))
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// elsewhere returns a directory on another file system than dir. Without one the test is
// skipped; in CI it fails.
func elsewhere(t *testing.T, dir string) string {
	t.Helper()
	other := fmt.Sprintf("/dev/shm/fs-test-%d", os.Getpid())
	err := os.Mkdir(other, 0o700)
	if err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(other) })
		var here, there syscall.Stat_t
		if err = errors.Join(syscall.Stat(dir, &here), syscall.Stat(other, &there)); err == nil && here.Dev != there.Dev {
			return other
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("/dev/shm is no file system of its own: %v", err)
	}
	t.Skipf("/dev/shm is no file system of its own: %v", err)
	return ""
}

// crashBound is how often a crash test kills at most, until enough kills came while
// a file was written.
const crashBound = 600

func killOften(t *testing.T, how string) {
	t.Helper()
	dirs := []string{filetest.Tree(t, nil)}
	if how == "move_file" { // within a file system it is a single step
		dirs = append(dirs, elsewhere(t, dirs[0]))
	}
	between := 0 // kills between the creation of a file and its renaming
	half := 0    // kills that left one file old and the other new, or one twice
	rounds, least := soak.Rounds(12, 60), soak.Rounds(4, 20)
	n := 0
	for ; n < rounds || between < least && n < crashBound; n++ {
		for _, name := range []string{"f", "g"} { // the expected state
			if err := os.WriteFile(filepath.Join(dirs[0], name), []byte(crashContent("a")), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if how == "move_file" {
			if err := os.RemoveAll(filepath.Join(dirs[1], "f")); err != nil {
				t.Fatal(err)
			}
		}
		if left := killed(t, how, n%2 == 1, dirs...); left > 0 {
			between++
		}
		f, g := wholeIn(t, "f", dirs...), wholeIn(t, "g", dirs[0])
		if f == "" || g == "" {
			t.Fatalf("round %d: of f there is %q, of g %q", n, f, g)
		}
		if how == "apply_patch" && f != g || len(f) > 1 {
			half++
		}
	}
	if between < least {
		t.Errorf("%d of %d kills came while a file was written, so the test shows little", between, n)
	}
	t.Logf("%d of %d kills came while a file was written, %d left the change half made", between, n, half)
	for _, dir := range dirs {
		p := start(t, dir, tool.MiB)
		if got := p.Call(t.Context(), "write_file", writeFileArgs{Path: "other", Content: "x"}); got.Error != nil {
			t.Fatal(message(got))
		}
	}
	if left := temporaries(t, dirs...); len(left) > 0 {
		t.Errorf("after the next write there is still %q", left)
	}
}
