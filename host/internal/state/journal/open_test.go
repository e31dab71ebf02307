package journal

import (
	"os"
	"strings"
	"testing"
)

func TestOpenRefuses(t *testing.T) {
	j, closeAll := openIn(t, t.TempDir(), Options{})
	s := j.opts.Store
	if _, err := Open(t.Context(), Options{Store: s}); err == nil {
		t.Error("Open without the path of a key: no error")
	}
	if _, err := Open(t.Context(), Options{KeyPath: "k"}); err == nil {
		t.Error("Open without a store: no error")
	}
	closeAll()
	for _, tt := range []struct {
		name   string
		damage func(v victim)
		want   string // "" if Open mends it
	}{
		{"the key is missing", func(v victim) { remove(v.t, keyPath(v.dir)) }, "the key is missing"},
		{"the key can be read by others", func(v victim) {
			if err := os.Chmod(keyPath(v.dir), 0o640); err != nil {
				v.t.Fatal(err)
			}
		}, "chmod 600"},
		{"the key is none", func(v victim) { write(v.t, keyPath(v.dir), "secret") }, "is not a key"},
		{"another key", func(v victim) { write(v.t, keyPath(v.dir), strings.Repeat("ab", keySize)) }, "its head was changed"},
		{"the host was killed before the key had its name", func(v victim) {
			if err := os.Rename(keyPath(v.dir), keyPath(v.dir)+newSuffix); err != nil {
				v.t.Fatal(err)
			}
		}, ""},
		{"the journal is gone", func(v victim) {
			tamper(v.t, v.dir, "DELETE FROM journal", "DELETE FROM journal_head")
		}, "is gone"},
		{"the database is gone", func(v victim) { remove(v.t, databasePath(v.dir)) }, "is gone"},
		{"the database and the key are gone", func(v victim) {
			remove(v.t, databasePath(v.dir))
			remove(v.t, keyPath(v.dir))
		}, "its key are gone, but"},
		{"the head file is gone", func(v victim) { remove(v.t, headIn(v.dir)) }, "journal.head is missing"},
		{"the head file is empty", func(v victim) { write(v.t, headIn(v.dir), "") }, "journal.head was changed"},
		{"the head file is that of another journal", func(v victim) {
			other := written(v.t)
			if err := os.Rename(headIn(other), headIn(v.dir)); err != nil {
				v.t.Fatal(err)
			}
		}, "journal.head was changed"},
		{"one slot of the head file was cut short", func(v victim) { damageSlot(v.t, v.dir, 0) }, ""},
		{"the other slot of the head file was cut short", func(v victim) { damageSlot(v.t, v.dir, 1) }, ""},
		{"both slots of the head file are damaged", func(v victim) {
			damageSlot(v.t, v.dir, 0)
			damageSlot(v.t, v.dir, 1)
		}, "journal.head was changed"},
		{"an old row is changed", func(v victim) { tamper(v.t, v.dir, "UPDATE journal SET call = 'tc_x' WHERE seq = 1") }, "row 1: changed"},
		{"the tail is cut", func(v victim) { tamper(v.t, v.dir, "DELETE FROM journal WHERE seq > 2") }, "row 3: missing at the end"},
		{"all rows are gone", func(v victim) { tamper(v.t, v.dir, "DELETE FROM journal") }, "rows 1-3: missing at the end"},
		{"the head is changed", func(v victim) {
			tamper(v.t, v.dir, `UPDATE journal_head SET body = replace(body, '"seq":3', '"seq":2')`)
		}, "its head was changed"},
		{"the head is no JSON", func(v victim) { tamper(v.t, v.dir, `UPDATE journal_head SET body = 'x'`) }, "head of the journal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			j, closeAll := openIn(t, dir, Options{})
			for i := range 3 {
				end1(t, j, readEnd(i))
			}
			closeAll()
			tt.damage(victim{t, dir})
			if tt.want == "" {
				j, _ := openIn(t, dir, Options{})
				wantVerified(t, j, 3)
				return
			}
			s := openStore(t, dir)
			_, err := Open(t.Context(), Options{Store: s, KeyPath: keyPath(dir)})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Open = %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// TestForeignWriter has another program write to the journal under a host that
// runs: calls are refused, rather than its rows hidden.
func TestForeignWriter(t *testing.T) {
	for _, statement := range []string{
		"UPDATE journal_head SET mac = zeroblob(32)",
		"DELETE FROM journal_head",
		"INSERT INTO journal VALUES (2, 'tc_x', '{}', zeroblob(32), zeroblob(32))",
	} {
		dir := t.TempDir()
		j, _ := openIn(t, dir, Options{})
		end1(t, j, readEnd(1))
		tamper(t, dir, statement)
		for range 300 { // the answer may arrive before its caller waits for it
			if err := j.Start(t.Context(), full()); err == nil {
				t.Fatalf("Start after %q: no error", statement)
			}
		}
		if j.Healthy() == nil {
			t.Errorf("Healthy after %q = nil", statement)
		}
	}
}

func TestBegin(t *testing.T) {
	// The host was killed between the key and the head: it starts a new journal.
	dir := t.TempDir()
	if _, err := makeKey(keyPath(dir) + newSuffix); err != nil {
		t.Fatal(err)
	}
	j, _ := openIn(t, dir, Options{})
	end1(t, j, readEnd(0))
	wantVerified(t, j, 1)
	info, err := os.Stat(keyPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("the key has mode %v, want 0600", got)
	}
}
