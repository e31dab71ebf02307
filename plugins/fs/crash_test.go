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
	"strings"
	"testing"
	"time"

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

// crashing is what the process does that is killed: it changes the file from
// one content to the other and back, without end.
func crashing(how, dir string) error {
	f := &files{}
	letters := []string{"a", "b"}
	for n := 1; ; n++ {
		was, now := letters[(n+1)%2], letters[n%2]
		w, err := openWorkspace([]string{dir}, roots.Options{Writers: &f.writers}, tool.MiB, nil)
		if err != nil {
			return err
		}
		var c change
		ctx := context.Background()
		switch how {
		case "write_file":
			c, err = planWrite(ctx, w, writeFileArgs{Path: "f", Content: crashContent(now)})
		case "edit_file":
			c, err = planEdit(ctx, w, editFileArgs{Path: "f", Edits: []replacement{{Old: "value: " + was, New: "value: " + now}}})
		case "control":
			err = os.WriteFile(filepath.Join(dir, "f"), []byte(crashContent(now)), 0o600)
		}
		if err == nil && c != nil {
			_, err = c.make(ctx)
		}
		if err := errors.Join(err, w.Close()); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(os.Stdout, n); err != nil {
			return err
		}
	}
}

// killed lets a process change the file, kills it at some moment, or as soon as
// a temporary file is seen, and returns what is in the file, and how many
// temporary files are left.
func killed(t *testing.T, how, dir string, onSight bool) (content string, left int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{"FS_CRASH=" + how, "FS_CRASH_DIR=" + dir}
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
	for due := false; !due && (!onSight || len(temporaries(t, dir)) == 0); {
		select {
		case <-moment:
			due = true
		case <-time.After(10 * time.Microsecond):
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if state, err := cmd.Process.Wait(); err != nil || state.ExitCode() >= 0 {
		t.Fatalf("%s has ended by itself: %v, %v", how, state, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data), len(temporaries(t, dir))
}

func temporaries(tb testing.TB, dir string) []string {
	tb.Helper()
	found, err := filepath.Glob(filepath.Join(dir, ".toolhost-*"))
	if err != nil {
		tb.Fatal(err)
	}
	return found
}

// After kill -9 a file is wholly the old or wholly the new one, and what the
// process left is removed by the next. In the control, which writes in place,
// it is neither.
func TestKilledWhileWriting(t *testing.T) {
	const (
		rounds = 60
		least  = 20  // kills while a file is written
		bound  = 600 // rounds until there were so many, and until the control is torn
	)
	whole := func(content string) bool { return content == crashContent("a") || content == crashContent("b") }
	torn := 0
	for n := 0; torn == 0; n++ {
		if n == bound {
			t.Fatalf("the control was not torn in %d rounds, so the test shows nothing", bound)
		}
		if content, _ := killed(t, "control", tree(t, map[string]string{"f": crashContent("a")}), false); !whole(content) {
			torn++
		}
	}
	for _, how := range []string{"write_file", "edit_file"} {
		t.Run(how, func(t *testing.T) {
			dir := tree(t, map[string]string{"f": crashContent("a")})
			between := 0 // kills between the creation of a file and its renaming
			n := 0
			for ; n < rounds || between < least && n < bound; n++ {
				if how == "edit_file" { // it expects the first of the two
					if err := os.WriteFile(filepath.Join(dir, "f"), []byte(crashContent("a")), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				content, left := killed(t, how, dir, n%2 == 1)
				if !whole(content) {
					t.Fatalf("round %d: the file has %d bytes and is neither the old nor the new one", n, len(content))
				}
				if left > 0 {
					between++
				}
			}
			if between < least {
				t.Errorf("%d of %d kills came while a file was written, so the test shows little", between, n)
			}
			t.Logf("%d of %d kills came while a file was written", between, n)
			p := start(t, dir, tool.MiB)
			if got := p.Call(t.Context(), "write_file", writeFileArgs{Path: "other", Content: "x"}); got.Error != nil {
				t.Fatal(message(got))
			}
			if left := temporaries(t, dir); len(left) > 0 {
				t.Errorf("after the next write there is still %q", left)
			}
		})
	}
}
