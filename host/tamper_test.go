package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/state/journal"
)

// recorded returns the configuration of a stopped host that has recorded some calls, and the
// number of rows.
func recorded(t *testing.T) (config string, rows int64) {
	t.Helper()
	h := serve(t, writeConfig(t, listening+counting))
	for i := range 8 {
		h.post(t, "probe_tally", map[string]any{"note": fmt.Sprintf("marker-%d", i)})
	}
	last := h.journal(t, "--limit", "1")
	h.stop()
	return h.config, last[0].Seq
}

// copyHost copies a configuration and its state, and returns the copy's path.
func copyHost(t *testing.T, config string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(config))); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.Chmod(path, 0o700)
		}
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, filepath.Base(config))
}

// tamperer changes a journal as an attacker who knows the program but not its key.
type tamperer struct {
	t    *testing.T
	path string // of the database
	last int64
}

// flip changes one bit of the file, in the recorded arguments of a row. It does not change a
// copy of the text in an unused page.
func (f tamperer) flip(seq int64, text string) {
	f.t.Helper()
	data := []byte(readFile(f.t, f.path))
	for at := 0; ; at++ {
		next := bytes.Index(data[at:], []byte(text))
		if next < 0 {
			f.t.Fatalf("row %d does not hold %q", seq, text)
		}
		at += next
		data[at] ^= 1
		if err := os.WriteFile(f.path, data, 0o600); err != nil {
			f.t.Fatal(err)
		}
		for _, r := range f.rows() {
			if r.seq == seq && !strings.Contains(r.body, text) {
				return
			}
		}
		data[at] ^= 1
	}
}

func (f tamperer) exec(statement string, args ...any) {
	f.t.Helper()
	db := f.open()
	defer db.Close()
	if _, err := db.Exec(statement, args...); err != nil {
		f.t.Fatalf("%s: %v", statement, err)
	}
}

func (f tamperer) open() *sql.DB {
	f.t.Helper()
	db, err := sql.Open("sqlite", f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	return db
}

// row is a stored row.
type row struct {
	seq        int64
	call, body string
	hash       []byte
}

func (f tamperer) rows() (rows []row) {
	f.t.Helper()
	db := f.open()
	defer db.Close()
	found, err := db.Query("SELECT seq, call, body, hash FROM journal ORDER BY seq")
	if err != nil {
		f.t.Fatal(err)
	}
	defer found.Close()
	for found.Next() {
		var r row
		if err := found.Scan(&r.seq, &r.call, &r.body, &r.hash); err != nil {
			f.t.Fatal(err)
		}
		rows = append(rows, r)
	}
	if err := found.Err(); err != nil {
		f.t.Fatal(err)
	}
	return rows
}

// link computes the hash of a row as documented: over the previous hash, the number, the call
// and the body.
func link(prev []byte, r row) []byte {
	content := binary.BigEndian.AppendUint64(nil, uint64(r.seq))
	content = binary.BigEndian.AppendUint64(content, uint64(len(r.call)))
	sum := sha256.Sum256(append(append(content, r.call...), r.body...))
	hash := sha256.Sum256(append(bytes.Clone(prev), sum[:]...))
	return hash[:]
}

// rewrite changes a row, gives it and all later ones correct hashes with MACs of the
// tamperer's own key, and updates the head.
func (f tamperer) rewrite(from int64) {
	f.t.Helper()
	prev := make([]byte, sha256.Size)
	mac := hmac.New(sha256.New, []byte("not the host's"))
	for _, r := range f.rows() {
		hash := link(prev, r)
		if !bytes.Equal(hash, r.hash) && r.seq <= from {
			f.t.Fatalf("control: row %d as it is has hash %x, computed %x", r.seq, r.hash, hash)
		}
		if r.seq >= from {
			if r.seq == from {
				r.body = strings.Replace(r.body, "marker", "MARKER", 1)
				hash = link(prev, r)
			}
			mac.Reset()
			mac.Write(hash)
			f.exec("UPDATE journal SET body = ?, hash = ?, mac = ? WHERE seq = ?", r.body, hash, mac.Sum(nil), r.seq)
		}
		prev = hash
	}
	var text string
	db := f.open()
	defer db.Close()
	if err := db.QueryRow("SELECT body FROM journal_head").Scan(&text); err != nil {
		f.t.Fatal(err)
	}
	var head map[string]any
	decode(f.t, text, &head)
	head["hash"] = fmt.Sprintf("%x", prev)
	f.exec("UPDATE journal_head SET body = ?", asJSON(head))
}

// TestTamperedJournal changes a journal in four ways: each change is found at its place. The
// control is an unchanged copy. A host that is started with a changed journal reports it and
// leaves it unchanged.
func TestTamperedJournal(t *testing.T) {
	t.Parallel()
	original, last := recorded(t)
	for _, tt := range []struct {
		name   string
		tamper func(f tamperer)
		want   []string // where the problems are
		refuse string   // the error of a host started with it; "" means that it starts
	}{
		{"nothing", func(tamperer) {}, nil, ""},
		{"one flipped bit", func(f tamperer) { f.flip(5, "marker-2") }, []string{"5"}, "row 5: changed"},
		{"one removed row", func(f tamperer) { f.exec("DELETE FROM journal WHERE seq = 6") }, []string{"6"}, "row 6: missing"},
		{
			"a cut tail", func(f tamperer) { f.exec("DELETE FROM journal WHERE seq > ?", f.last-3) },
			[]string{fmt.Sprintf("%d-%d", last-2, last)},
			fmt.Sprintf("rows %d-%d: missing at the end", last-2, last),
		},
		{
			"a chain with correct hashes", func(f tamperer) { f.rewrite(7) },
			[]string{"0", fmt.Sprintf("7-%d", last)},
			"its head was changed",
		},
		{
			"no journal", func(f tamperer) { f.exec("DELETE FROM journal"); f.exec("DELETE FROM journal_head") },
			[]string{"0"},
			"the journal in",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := copyHost(t, original)
			path := filepath.Join(filepath.Dir(config), "state", "toolhost.db")
			f := tamperer{t, path, last}
			tt.tamper(f)
			rows := len(f.rows())
			found := func() {
				t.Helper()
				if got := problemsOf(t, config); strings.Join(got, " ") != strings.Join(tt.want, " ") {
					t.Errorf("toolhost journal verify finds problems at %v, want %v", got, tt.want)
				}
			}
			found()
			found() // verifying changes nothing

			before := readFile(t, path)
			if tt.refuse == "" {
				if _, stderr, code := cli(config, "call", "probe_tally", "note=after"); code != 0 {
					t.Fatalf("a call after that exits with %d: %s", code, stderr)
				}
				found()
				if got := len(f.rows()); got != rows+2 {
					t.Errorf("the journal has %d rows after a call, had %d", got, rows)
				}
				return
			}
			for _, args := range [][]string{{"serve"}, {"call", "probe_tally", "note=after"}, {"journal", "query"}} {
				_, stderr, code := cli(config, args...)
				if code != 1 || !strings.Contains(stderr, tt.refuse) {
					t.Errorf("toolhost %s exits with %d and says %q, want %q", args[0], code, stderr, tt.refuse)
				}
			}
			if readFile(t, path) != before {
				t.Error("the database has changed since")
			}
			found()
		})
	}
}

// problemsOf verifies the journal of a stopped host and returns the places of its problems.
// "0" means the journal as a whole.
func problemsOf(t *testing.T, config string) (places []string) {
	t.Helper()
	text, textErr, textCode := cli(config, "journal", "verify")
	out, stderr, code := cli(config, "journal", "verify", "--json")
	var report journal.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("toolhost journal verify exits with %d and prints %s%s", code, out, stderr)
	}
	if want := min(1, len(report.Problems)); code != want || textCode != want {
		t.Errorf("toolhost journal verify exits with %d, as JSON with %d, want %d; it says %s", textCode, code, want, textErr)
	}
	for _, p := range report.Problems {
		if !strings.Contains(text, p.String()) {
			t.Errorf("toolhost journal verify does not print %q, but\n%s", p, text)
		}
		place := fmt.Sprint(p.From)
		if p.To != p.From {
			place += fmt.Sprintf("-%d", p.To)
		}
		places = append(places, place)
	}
	if whole := strings.Contains(text, "unchanged"); whole != (len(places) == 0) {
		t.Errorf("toolhost journal verify finds %v and prints\n%s", places, text)
	}
	return places
}
