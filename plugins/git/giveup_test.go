package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/tool"
)

// waitFor waits until something is so, for as long as a slow machine may take.
func waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	patience, look := time.NewTimer(time.Minute), time.NewTicker(10*time.Millisecond)
	defer patience.Stop()
	defer look.Stop()
	for !so() {
		select {
		case <-look.C:
		case <-patience.C:
			t.Fatalf("%s: waited in vain", what)
		}
	}
}

func there(w *workspace, name string) bool {
	_, err := os.Lstat(filepath.Join(w.dir, name))
	return err == nil
}

// reads reports whether a git of the workspace reads one of its files.
func reads(t *testing.T, w *workspace, name string) bool {
	t.Helper()
	for _, path := range gitsIn(t, w.dir) {
		open, err := filepath.Glob(filepath.Join(filepath.Dir(path), "fd", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range open {
			if to, err := os.Readlink(fd); err == nil && to == filepath.Join(w.dir, name) {
				return true
			}
		}
	}
	return false
}

// giveUp calls a tool and gives the call up as soon as something of it is seen. It
// returns when the call has ended.
func (w *workspace) giveUp(t *testing.T, name string, in args, what string, begun func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan tool.Result, 1)
	go func() { ended <- w.plugin.Call(ctx, name, in) }()
	waitFor(t, what, func() bool { return begun() || len(ended) > 0 })
	cancel()
	if got := <-ended; got.Error == nil || got.Error.Code != tool.Canceled {
		t.Fatalf("%s = %q, %v, want it canceled at %s", name, got.Text(), got.Error, what)
	}
}

// A call that is given up leaves no lock behind which would keep the next one out.
func TestGivenUpLeavesNoLock(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	for _, name := range []string{"large", "larger"} {
		if err := os.WriteFile(filepath.Join(w.dir, "r", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(w.dir, "r", name), 8<<30); err != nil {
			t.Fatal(err)
		}
	}
	// Git notes that a lock is its own a moment after it has made it, and before it
	// reads any file.
	w.giveUp(t, "git_add", args{"files": []string{"r"}}, "the reading of a file", func() bool {
		return there(w, "r/.git/index.lock") && (reads(t, w, "r/large") || reads(t, w, "r/larger"))
	})
	waitFor(t, "git's end", func() bool { return len(gitsIn(t, w.dir)) == 0 })
	w.remove("r/large")
	w.remove("r/larger")
	w.write(map[string]string{"r/a.txt": "x\n"})
	w.must("git_add", args{"files": []string{"r/a.txt"}})
}

// A rebase that is given up is undone.
func TestGivenUpRebaseIsUndone(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{settings: map[string]any{"protocols": []string{"file"}}})
	w.repo("r")
	w.git("", "clone", "-q", "--bare", "r", "remote.git")
	w.git("r", "remote", "add", "origin", w.dir+"/remote.git")
	(&server{dir: w.dir}).commitOn(w, "remote", "main", "theirs.txt", "x")
	// Enough commits that the rebase is still running when it is checked: git makes less than a
	// thousand in a second.
	var history strings.Builder
	for i := range soak.Rounds(1000, 5000) {
		fmt.Fprintf(&history, "commit refs/heads/main\ncommitter Ada <ada@example.com> %d +0000\ndata 1\nx\n", 1_800_000_000+i)
		if i == 0 {
			history.WriteString("from refs/heads/main^0\n")
		}
		text := fmt.Sprint(i)
		fmt.Fprintf(&history, "M 100644 inline a.txt\ndata %d\n%s\n", len(text), text)
	}
	w.fastImport(filepath.Join(w.dir, "r"), history.String())
	w.git("r", "reset", "-q", "--hard")
	before := w.git("r", "rev-parse", "HEAD")
	w.giveUp(t, "git_pull", args{"path": "r", "branch": "main", "mode": "rebase"}, "the beginning of the rebase", func() bool { return there(w, "r/.git/rebase-merge/onto") })
	waitFor(t, "the end of the rebase", func() bool { return !there(w, "r/.git/rebase-merge") && len(gitsIn(t, w.dir)) == 0 })
	if got := w.git("r", "rev-parse", "HEAD", "main"); got != before+"\n"+before {
		t.Errorf("HEAD and main are %s, want %s", got, before)
	}
	w.must("git_switch", args{"path": "r", "branch": "other", "create": true})
}

// A git that was ended as it began a rebase has noted too little to go back.
func TestRebaseThatHasOnlyBegunIsUndone(t *testing.T) {
	t.Parallel()
	for _, noted := range []string{"", "interactive", "interactive head-name", "interactive head-name onto"} {
		w := diverged(t, layers{})
		w.pretend(fmt.Sprintf(`case " $* " in
*" rebase --abort "* | *" rebase --quit "*) ;;
*" rebase "*)
	mkdir .git/rebase-merge
	for file in %s; do echo x >.git/rebase-merge/$file; done
	exit 128
	;;
esac`, noted))
		before := w.git("r", "rev-parse", "HEAD")
		got := w.call("git_pull", args{"path": "r", "branch": "main", "mode": "rebase"})
		if got.Error == nil || there(w, "r/.git/rebase-merge") {
			t.Errorf("with %q noted: git_pull = %v; a rebase is in progress: %v", noted, got.Error, there(w, "r/.git/rebase-merge"))
		}
		if now := w.git("r", "rev-parse", "HEAD", "main"); now != before+"\n"+before {
			t.Errorf("with %q noted: HEAD and main are %s, want %s", noted, now, before)
		}
	}
}
