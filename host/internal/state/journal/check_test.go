package journal

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// TestOlderRows changes rows of a journal that is too long to be checked when it
// is opened.
func TestOlderRows(t *testing.T) {
	t.Parallel()
	const rows = 4 * pageRows
	for _, tt := range []struct {
		name      string
		statement string
		refused   string // by Open
		want      Integrity
	}{
		{"nothing", "", "", Verified},
		{"an old row", "UPDATE journal SET call = 'tc_x' WHERE seq = 5", "", Changed},
		{"the MAC of an old row", "UPDATE journal SET mac = zeroblob(32) WHERE seq = 700", "", Changed},
		{"an old row removed", "DELETE FROM journal WHERE seq = 500", "", Changed},
		{"the first rows removed", "DELETE FROM journal WHERE seq < 5", "", Changed},
		{"all old rows removed", "DELETE FROM journal WHERE seq < 1700", "", Changed},
		{"a row before the first", "INSERT INTO journal SELECT 0, call, body, hash, mac FROM journal WHERE seq = 1", "", Changed},
		{"the last row that is checked later", "UPDATE journal SET call = 'tc_x' WHERE seq = 1699", "", Changed},
		{"the first row that is checked at once", "UPDATE journal SET call = 'tc_x' WHERE seq = 1700", "row 1700: changed", ""},
		{"a new row removed", "DELETE FROM journal WHERE seq = 1900", "row 1900: missing", ""},
		{"the first row that is checked at once removed", "DELETE FROM journal WHERE seq = 1700", "row 1700: missing", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			more(t, dir, rows, Options{})
			if tt.statement != "" {
				tamper(t, dir, tt.statement)
			}
			if tt.refused != "" {
				_, err := Open(t.Context(), Options{Store: openStore(t, dir), KeyPath: keyPath(dir)})
				if !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), tt.refused) {
					t.Errorf("Open = %v, want ErrChanged and %q", err, tt.refused)
				}
				return
			}
			j, closeAll := openIn(t, dir, Options{})
			if got := j.Integrity(); got != NewestVerified {
				t.Errorf("Integrity without the older rows = %q, want %q", got, NewestVerified)
			}
			closeAll()
			j, _ = openIn(t, dir, Options{Older: true})
			j.checks.running.Wait()
			if got := j.Integrity(); got != tt.want {
				t.Errorf("Integrity = %q, want %q", got, tt.want)
			}
			refused := tt.want == Changed
			if err := j.Start(t.Context(), full()); errors.Is(err, ErrChanged) != refused {
				t.Errorf("Start = %v, want ErrChanged: %v", err, refused)
			}
			if err := j.Healthy(); errors.Is(err, ErrChanged) != refused {
				t.Errorf("Healthy = %v, want ErrChanged: %v", err, refused)
			}
			end1(t, j, readEnd(1)) // reads continue
		})
	}
}

// TestOlderRowsAndRetention removes old rows while they are checked.
func TestOlderRowsAndRetention(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	more(t, dir, 8*pageRows, Options{})
	j, _ := openIn(t, dir, Options{Older: true, MaxSize: 20 * tool.KiB})
	for i := range 50 {
		end1(t, j, readEnd(i))
	}
	j.checks.running.Wait()
	if got := j.Integrity(); got != Verified {
		t.Errorf("Integrity = %q, want %q", got, Verified)
	}
	if rows := all(t, j); rows[0].Seq == 1 {
		t.Error("no row was removed: this shows nothing")
	}
}

// TestCloseEndsTheChecks closes a journal whose older rows are being checked.
func TestCloseEndsTheChecks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	more(t, dir, 8*pageRows, Options{})
	_, closeAll := openIn(t, dir, Options{Older: true})
	closeAll()
}
