package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

func headIn(dir string) string { return filepath.Join(dir, headName) }

// damageSlot writes over half of a slot of the head file.
func damageSlot(tb testing.TB, dir string, slot int64) {
	tb.Helper()
	f, err := os.OpenFile(headIn(dir), os.O_WRONLY, 0)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, slotText/2), slot*slotSize+slotText/4); err != nil {
		tb.Error(err)
	}
	if err := f.Close(); err != nil {
		tb.Error(err)
	}
}

// copyState copies files of a state directory into another one.
func copyState(tb testing.TB, from, to string, names ...string) {
	tb.Helper()
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			tb.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o700); err != nil {
			tb.Fatal(err)
		}
		write(tb, filepath.Join(to, name), string(data))
	}
}

const (
	dbName  = "toolhost.db"
	keyName = "keys/journal.key"
)

// more writes n more rows to the journal in dir.
func more(tb testing.TB, dir string, n int, opts Options) {
	tb.Helper()
	j, closeAll := openIn(tb, dir, opts)
	for i := range n {
		if err := j.End(tb.Context(), readEnd(i), i == n-1); err != nil {
			tb.Fatal(err)
		}
	}
	closeAll()
}

// TestOlderDatabase puts databases in the place of a journal's that an earlier
// version of this package took for whole: they are.
func TestOlderDatabase(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		attack func(t *testing.T, dir string)
		want   string // "" if nothing is wrong
	}{
		{"an older copy", func(t *testing.T, dir string) {
			t.Helper()
			more(t, dir, 5, Options{})
			old := t.TempDir()
			copyState(t, dir, old, dbName)
			more(t, dir, 5, Options{})
			copyState(t, old, dir, dbName)
		}, "it ends with row 5, but had row 10"},
		{"an older copy, after rows were removed by age", func(t *testing.T, dir string) {
			t.Helper()
			more(t, dir, 1000, Options{MaxSize: 20 * tool.KiB})
			old := t.TempDir()
			copyState(t, dir, old, dbName)
			more(t, dir, 1, Options{MaxSize: 20 * tool.KiB})
			copyState(t, old, dir, dbName)
		}, "it ends with row 1000, but had row 1001"},
		{"its log removed while the host was killed", func(t *testing.T, dir string) {
			t.Helper()
			more(t, dir, 5, Options{})
			killed := t.TempDir()
			j, _ := openIn(t, killed, Options{})
			end1(t, j, readEnd(1))
			if _, err := j.opts.Store.Read().Exec("PRAGMA wal_checkpoint"); err != nil {
				t.Fatal(err)
			}
			end1(t, j, readEnd(2))
			copyState(t, killed, dir, dbName, keyName, headName)
		}, "it ends with row 1, but had row 2"},
		{"another continuation of an older copy", func(t *testing.T, dir string) {
			t.Helper()
			more(t, dir, 5, Options{})
			other := t.TempDir()
			copyState(t, dir, other, dbName, keyName, headName)
			more(t, dir, 2, Options{})
			more(t, other, 7, Options{})
			copyState(t, other, dir, dbName)
		}, "row 7 is not the one that journal.head names"},
		{"a continuation of the same length", func(t *testing.T, dir string) {
			t.Helper()
			more(t, dir, 5, Options{})
			other := t.TempDir()
			copyState(t, dir, other, dbName, keyName, headName)
			more(t, dir, 2, Options{})
			more(t, other, 2, Options{})
			copyState(t, other, dir, dbName)
		}, "row 7 is not the one that journal.head names"},
		{"the head of the older database as head file", func(t *testing.T, dir string) {
			t.Helper()
			more(t, dir, 5, Options{})
			body, mac, err := readHead(t.Context(), database(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			damageSlot(t, dir, 0)
			damageSlot(t, dir, 1)
			write(t, headIn(dir), fmt.Sprintf("%-300s", fmt.Sprintf("%s %x\n", body, mac)))
		}, "journal.head was changed"},
		{"control: the head file is behind, since the machine lost power", func(t *testing.T, dir string) {
			t.Helper()
			more(t, dir, 5, Options{})
			old := t.TempDir()
			copyState(t, dir, old, headName)
			more(t, dir, 5, Options{})
			copyState(t, old, dir, headName)
		}, ""},
		{"control: so far behind that its row was removed by age", func(t *testing.T, dir string) {
			t.Helper()
			more(t, dir, 5, Options{})
			old := t.TempDir()
			copyState(t, dir, old, headName)
			more(t, dir, 1000, Options{MaxSize: 20 * tool.KiB})
			copyState(t, old, dir, headName)
		}, ""},
		{"control: all is copied", func(t *testing.T, dir string) {
			t.Helper()
			from := written(t)
			copyState(t, from, dir, dbName, keyName, headName)
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tt.attack(t, dir)
			report := verifyIn(t, dir)
			if tt.want == "" {
				j, _ := openIn(t, dir, Options{})
				end1(t, j, readEnd(1))
				if len(report.Problems) > 0 {
					t.Errorf("Verify = %v, want no problem", report.Problems)
				}
				return
			}
			_, err := Open(t.Context(), Options{Store: openStore(t, dir), KeyPath: keyPath(dir)})
			if !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Open = %v, want ErrChanged and %q", err, tt.want)
			}
			if len(report.Problems) != 1 || !strings.Contains(report.Problems[0].What, strings.TrimPrefix(tt.want, "it ")) {
				t.Errorf("Verify = %v, want %q", report.Problems, tt.want)
			}
		})
	}
}

// TestHeadFileOfAnOlderVersion opens a journal that was written before there were
// head files.
func TestHeadFileOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	dir := written(t)
	db := database(t, dir)
	body, mac, err := readHead(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	key, err := readKey(keyPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	h, genuine, err := unsealHead(newChain(key), body, mac)
	if err != nil || !genuine || !h.Filed {
		t.Fatalf("head = %+v, %v, %v", h, genuine, err)
	}
	h.Filed = false
	if body, mac, err = h.seal(newChain(key)); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("UPDATE journal_head SET body = ?, mac = ?", body, mac); err != nil {
		t.Fatal(err)
	}
	db.Close()
	remove(t, headIn(dir))
	if report := verifyIn(t, dir); len(report.Problems) > 0 {
		t.Errorf("Verify = %v, want no problem", report.Problems)
	}
	more(t, dir, 1, Options{})
	remove(t, headIn(dir))
	if _, err := Open(t.Context(), Options{Store: openStore(t, dir), KeyPath: keyPath(dir)}); !errors.Is(err, ErrChanged) {
		t.Errorf("Open without the head file that it has by now = %v", err)
	}
}

// TestHeadFileUnderAHost has the head file removed, and made impossible to
// write, under a host that runs.
func TestHeadFileUnderAHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, closeAll := openIn(t, dir, Options{})
	r := full()
	end1(t, j, r)
	remove(t, headIn(dir))
	end1(t, j, r)
	if last, err := readHeadFile(headIn(dir), newChain(j.key)); err != nil || last.Seq != 2 {
		t.Errorf("after it was removed the head file says %v, %v, want row 2", last, err)
	}

	remove(t, headIn(dir))
	if err := os.MkdirAll(filepath.Join(headIn(dir), "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	start1(t, j, r) // which is on disk before the head file is tried
	if err := j.Healthy(); !errors.Is(err, store.ErrUnwritable) || !strings.Contains(err.Error(), headName) {
		t.Errorf("Healthy without a head file = %v", err)
	}
	if err := j.Start(t.Context(), readEnd(1)); !errors.Is(err, store.ErrUnwritable) {
		t.Errorf("Start without a head file = %v", err)
	}
	if err := os.RemoveAll(headIn(dir)); err != nil {
		t.Fatal(err)
	}
	start1(t, j, readEnd(2))
	if err := j.Healthy(); err != nil {
		t.Errorf("Healthy with a head file again = %v", err)
	}
	closeAll()
	j, _ = openIn(t, dir, Options{})
	wantVerified(t, j, 4)
}

// stepKill in the environment is the number of the step before which writeToStep
// kills itself.
const stepKill = "TOOLHOST_JOURNAL_TEST_STEP_KILL"

// writeToStep is the life of a journal: it is begun, closed, opened again,
// written to until old rows are removed, and its head file is lost. It prints
// each row that it may rely on.
func writeToStep(dir string) error {
	ctx := context.Background()
	left, err := strconv.Atoi(os.Getenv(stepKill))
	if err != nil {
		return err
	}
	step := func(what string) {
		if left--; left == 0 {
			fmt.Fprintln(os.Stdout, "killed before:", what)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the kill is in progress
		}
	}
	for life := range 3 {
		s, err := store.Open(ctx, store.Options{Dir: dir})
		if err != nil {
			return err
		}
		j, err := Open(ctx, Options{Store: s, KeyPath: keyPath(dir), MaxSize: 20 * tool.KiB, step: step})
		if err != nil {
			return err
		}
		if life == 2 {
			if err := os.Remove(headIn(dir)); err != nil {
				return err
			}
			fmt.Fprintln(os.Stdout, "removed")
		}
		for i, lagging := range []int{0, 100} {
			for k := range lagging {
				if err := j.End(ctx, readEnd(k), false); err != nil {
					return err
				}
			}
			r := full()
			r.Call = fmt.Sprintf("tc_%d_%d", life, i)
			if err := j.Start(ctx, r); err != nil {
				return err
			}
			var last int64
			if err := s.Read().QueryRowContext(ctx, "SELECT max(seq) FROM journal").Scan(&last); err != nil {
				return err
			}
			fmt.Fprintln(os.Stdout, "row:", last)
			if err := j.End(ctx, r, true); err != nil {
				return err
			}
		}
		if err := errors.Join(j.Close(ctx), s.Close()); err != nil {
			return err
		}
	}
	return nil
}

// TestHeadFileKeepsADurableSlot writes and syncs head files in many orders. It then simulates a
// loss of power that damages everything written since the last sync: the file still has its
// content of the last sync.
func TestHeadFileKeepsADurableSlot(t *testing.T) {
	t.Parallel()
	c := newChain(bytes.Repeat([]byte{7}, keySize))
	for pattern := range 1 << 8 {
		dir := t.TempDir()
		h, err := makeHeadFile(headIn(dir), c, lastRow{}, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		var durable int64
		for i := range 8 {
			if err := h.write(lastRow{Seq: int64(i + 1)}); err != nil {
				t.Fatal(err)
			}
			if pattern>>i&1 == 1 {
				if err := h.sync(); err != nil {
					t.Fatal(err)
				}
				durable = int64(i + 1)
			}
		}
		if !h.due.IsZero() {
			damageSlot(t, dir, int64(h.slot))
		}
		if last, err := readHeadFile(headIn(dir), c); err != nil || last.Seq != durable {
			t.Errorf("order %08b: the file says %v, %v, want row %d", pattern, last.Seq, err, durable)
		}
		if err := h.file.Close(); err != nil {
			t.Error(err)
		}
	}
}
