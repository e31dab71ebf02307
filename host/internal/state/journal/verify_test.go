package journal

import (
	"bytes"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	mathrand "math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/state/store"
)

// forger writes to a journal like a user who knows the program but not its key.
type forger struct {
	tb testing.TB
	tx *sql.Tx
}

func (f forger) exec(query string, args ...any) {
	f.tb.Helper()
	if _, err := f.tx.Exec(query, args...); err != nil {
		f.tb.Fatalf("%s: %v", query, err)
	}
}

// row is a row with its MAC.
type macRow struct {
	stored
	mac []byte
}

func (f forger) row(seq int64) macRow {
	f.tb.Helper()
	r := macRow{stored: stored{seq: seq}}
	var hash []byte
	err := f.tx.QueryRow("SELECT call, body, hash, mac FROM journal WHERE seq = ?", seq).Scan(&r.call, &r.body, &hash, &r.mac)
	if err != nil {
		f.tb.Fatalf("row %d: %v", seq, err)
	}
	r.hash, _ = asDigest(hash)
	return r
}

func (f forger) put(r macRow) {
	f.tb.Helper()
	f.exec("INSERT OR REPLACE INTO journal VALUES (?, ?, ?, ?, ?)", r.seq, r.call, r.body, r.hash[:], r.mac)
}

// rewrite changes the bodies of rows and computes their hashes as they should
// be; the MACs stay, or become those of another key.
func (f forger) rewrite(from, to int64, anotherKey bool) {
	f.tb.Helper()
	c := newChain(make([]byte, keySize))
	prev := f.row(from - 1).hash
	for seq := from; seq <= to; seq++ {
		r := f.row(seq)
		if seq == from {
			r.body = strings.Replace(r.body, `"ann"`, `"eve"`, 1)
		}
		content := c.content(seq, r.call, r.body)
		r.hash = c.link(prev, content)
		if anotherKey {
			r.mac = c.rowMAC(content, r.hash)
		}
		f.put(r)
		prev = r.hash
	}
}

// head replaces fields of the head; a nil mac means one from another key.
func (f forger) head(change func(*head), mac []byte) {
	f.tb.Helper()
	body, _, err := readHead(f.tb.Context(), f.tx)
	if err != nil {
		f.tb.Fatal(err)
	}
	c := newChain(make([]byte, keySize))
	h, _, err := unsealHead(c, body, nil)
	if err != nil {
		f.tb.Fatal(err)
	}
	change(&h)
	body, forged, err := h.seal(c)
	if err != nil {
		f.tb.Fatal(err)
	}
	if mac == nil {
		mac = forged
	}
	f.exec("UPDATE journal_head SET body = ?, mac = ?", body, mac)
}

// flip changes one bit in a column of a row.
func (f forger) flip(column string, seq int64, at int, bit byte) {
	f.tb.Helper()
	if column == "seq" {
		f.exec("UPDATE journal SET seq = ? WHERE seq = ?", seq^1024<<(at%8), seq)
		return
	}
	var value []byte
	if err := f.tx.QueryRow("SELECT "+column+" FROM journal WHERE seq = ?", seq).Scan(&value); err != nil {
		f.tb.Fatal(err)
	}
	value = bytes.Clone(value)
	value[at%len(value)] ^= 1 << (bit % 8)
	if column == "hash" || column == "mac" {
		f.exec("UPDATE journal SET "+column+" = ? WHERE seq = ?", value, seq)
		return
	}
	f.exec("UPDATE journal SET "+column+" = CAST(? AS TEXT) WHERE seq = ?", value, seq)
}

// rows is how many rows the journals of these tests have.
const rows = 30

// written makes a journal in a directory, closed, and returns the directory.
func written(tb testing.TB) (dir string) {
	tb.Helper()
	dir = tb.TempDir()
	j, closeAll := openIn(tb, dir, Options{})
	for i := range rows {
		r := full()
		r.Call, r.User = readEnd(i).Call, "ann"
		end1(tb, j, r)
	}
	closeAll()
	return dir
}

// places lists the problems of a report as "7", "12-14", or "" for one of the
// whole.
func places(report Report) []string {
	var all []string
	for _, p := range report.Problems {
		place, _, found := strings.Cut(p.String(), ": ")
		if p.From == 0 || !found {
			place = ""
		}
		all = append(all, strings.TrimPrefix(strings.TrimPrefix(place, "rows "), "row "))
	}
	return all
}

func verifyIn(tb testing.TB, dir string) Report {
	tb.Helper()
	s, err := store.Open(tb.Context(), store.Options{Dir: dir})
	if err != nil {
		tb.Fatal(err)
	}
	defer s.Close()
	report, err := Verify(tb.Context(), Options{Store: s, KeyPath: keyPath(dir)})
	if err != nil {
		tb.Fatal(err)
	}
	return report
}

// TestVerifyFinds attacks a journal in every way; Verify must find each change at its place. The
// control reads the same rows without the key, like a journal that only hashes.
func TestVerifyFinds(t *testing.T) {
	const head = "" // a problem of the whole
	for _, tt := range []struct {
		name    string
		attack  func(f forger)
		want    []string
		control []string // without the key
	}{
		{"nothing", func(forger) {}, nil, nil},
		{"a bit of seq", func(f forger) { f.flip("seq", 7, 0, 0) }, []string{"7", "31-1031", "1031"}, []string{"7", "31-1031"}},
		{"a bit of call", func(f forger) { f.flip("call", 7, 3, 1) }, []string{"7"}, []string{"7"}},
		{"a bit of the time", func(f forger) { f.flip("body", 7, 12, 0) }, []string{"7"}, []string{"7"}},
		{"a bit of the body", func(f forger) { f.flip("body", 7, 200, 4) }, []string{"7"}, []string{"7"}},
		{"a bit of hash", func(f forger) { f.flip("hash", 7, 0, 0) }, []string{"7"}, []string{"7-8"}},
		{"a bit of mac", func(f forger) { f.flip("mac", 7, 31, 7) }, []string{"7"}, nil},
		{"a shorter hash", func(f forger) { f.exec("UPDATE journal SET hash = x'00' WHERE seq = 7") }, []string{"7"}, []string{"7"}},
		{"no mac", func(f forger) { f.exec("UPDATE journal SET mac = x'' WHERE seq = 7") }, []string{"7"}, nil},
		{"the first row", func(f forger) { f.flip("body", 1, 200, 4) }, []string{"1"}, []string{"1"}},
		{"the last row", func(f forger) { f.flip("body", rows, 200, 4) }, []string{"30"}, []string{"30"}},
		{"one removed row", func(f forger) { f.exec("DELETE FROM journal WHERE seq = 7") }, []string{"7"}, []string{"7"}},
		{"the first rows removed", func(f forger) { f.exec("DELETE FROM journal WHERE seq < 4") }, []string{"1-3"}, []string{"1-3"}},
		{"a row removed and the next changed", func(f forger) {
			f.exec("DELETE FROM journal WHERE seq = 7")
			f.flip("body", 8, 200, 4)
		}, []string{"7", "8"}, []string{"7"}},
		{"one inserted row", func(f forger) {
			f.exec("UPDATE journal SET seq = -seq - 1 WHERE seq >= 7")
			f.exec("UPDATE journal SET seq = -seq WHERE seq < 0")
			r := f.row(6)
			r.seq = 7
			f.put(r)
		}, []string{"7-31", "31"}, []string{"7-31", "31"}},
		{"one inserted row before the first", func(f forger) {
			r := f.row(1)
			r.seq = 0
			f.put(r)
		}, []string{""}, []string{""}},
		{"a row at the end", func(f forger) {
			r := f.row(rows)
			r.seq++
			f.put(r)
			f.rewrite(rows+1, rows+1, true)
		}, []string{"31", "31"}, []string{"31"}},
		{"two swapped rows", func(f forger) {
			a, b := f.row(7), f.row(20)
			a.seq, b.seq = b.seq, a.seq
			f.put(a)
			f.put(b)
		}, []string{"7", "20"}, []string{"7-8", "20-21"}},
		{"two swapped neighbours", func(f forger) {
			a, b := f.row(7), f.row(8)
			a.seq, b.seq = b.seq, a.seq
			f.put(a)
			f.put(b)
		}, []string{"7-8"}, []string{"7-9"}},
		{"a cut tail", func(f forger) { f.exec("DELETE FROM journal WHERE seq > 20") }, []string{"21-30"}, []string{"21-30"}},
		{"a cut tail, the MAC of a row as the head's", func(f forger) {
			f.exec("DELETE FROM journal WHERE seq > 20")
			r := f.row(20)
			f.head(func(h *headType) { h.Seq, h.Hash = 20, r.hash }, r.mac)
		}, []string{head}, nil},
		{"all rows", func(f forger) { f.exec("DELETE FROM journal") }, []string{"1-30"}, []string{"1-30"}},
		{"three rows with correct hashes", func(f forger) { f.rewrite(12, 14, false) }, []string{"12-14"}, []string{"15"}},
		{"three rows with correct hashes and MACs of another key", func(f forger) { f.rewrite(12, 14, true) }, []string{"12-14"}, []string{"15"}},
		{"all rows from one on with correct hashes", func(f forger) { f.rewrite(12, rows, true) }, []string{"12-30"}, []string{"30"}},
		{"all rows from one on with correct hashes, and the head", func(f forger) {
			f.rewrite(12, rows, true)
			last := f.row(rows)
			f.head(func(h *headType) { h.Hash = last.hash }, nil)
		}, []string{head, "12-30"}, nil},
		{"the head", func(f forger) { f.head(func(h *headType) { h.OpenFrom = 3 }, nil) }, []string{head}, nil},
		{"a missing head", func(f forger) { f.exec("DELETE FROM journal_head") }, []string{head}, []string{head}},
		{"a head that is no JSON", func(f forger) { f.exec("UPDATE journal_head SET body = '['") }, []string{head}, []string{head}},
		{"the begin of the head", func(f forger) {
			r := f.row(5)
			f.exec("DELETE FROM journal WHERE seq <= 5")
			f.head(func(h *headType) { h.AnchorSeq, h.AnchorHash = 5, r.hash }, nil)
		}, []string{head}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := written(t)
			db := database(t, dir)
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			tt.attack(forger{t, tx})
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			db.Close()
			report := verifyIn(t, dir)
			if diff := cmp.Diff(tt.want, places(report)); diff != "" {
				t.Errorf("places of the problems (-want +got):\n%s\n%v", diff, report.Problems)
			}
			remove(t, keyPath(dir))
			control := verifyIn(t, dir)
			if len(control.Problems) == 0 || !strings.Contains(control.Problems[0].What, "the key is missing") {
				t.Fatalf("without the key: %v, want that said first", control.Problems)
			}
			control.Problems = control.Problems[1:]
			if diff := cmp.Diff(tt.control, places(control)); diff != "" {
				t.Errorf("places without the key (-want +got):\n%s\n%v", diff, control.Problems)
			}
		})
	}
}

type headType = head

// TestVerifyWhileOpen has a journal that runs, whose files are put back to an
// earlier state: only the host that runs can know.
func TestVerifyWhileOpen(t *testing.T) {
	dir := written(t)
	db := database(t, dir)
	body, mac, err := readHead(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	j, _ := openIn(t, dir, Options{})
	for i := range 5 {
		end1(t, j, readEnd(i))
	}
	wantVerified(t, j, rows+5)
	db = database(t, dir)
	if _, err := db.Exec("DELETE FROM journal WHERE seq > ?", rows); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("UPDATE journal_head SET body = ?, mac = ?", body, mac); err != nil {
		t.Fatal(err)
	}
	report, err := j.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"31-35"}, places(report)); diff != "" {
		t.Errorf("places (-want +got):\n%s\n%v", diff, report.Problems)
	}
	if report := verifyIn(t, dir); len(report.Problems) != 1 || !strings.Contains(report.Problems[0].What, "older than journal.head") {
		t.Errorf("Verify by another process finds %v, want that the head file names a later row", report.Problems)
	}
	remove(t, filepath.Join(dir, headName))
	if report := verifyIn(t, dir); len(report.Problems) != 1 || !strings.Contains(report.Problems[0].What, "is missing") {
		t.Errorf("Verify without the head file finds %v", report.Problems)
	}

	remove(t, keyPath(dir))
	report, err = j.Verify(t.Context())
	if err != nil || len(report.Problems) != 2 || !strings.Contains(report.Problems[0].What, "cannot start again without it") {
		t.Errorf("Verify without the file of the key = %+v, %v", report, err)
	}
	write(t, keyPath(dir), strings.Repeat("ab", keySize))
	report, err = j.Verify(t.Context())
	if err != nil || len(report.Problems) != 2 || !strings.Contains(report.Problems[0].What, "not the one that the host uses") {
		t.Errorf("Verify with another key in the file = %+v, %v", report, err)
	}
}

// TestVerifyReadsTheIndex takes a row out of the index, so that a query by call
// does not find it.
func TestVerifyReadsTheIndex(t *testing.T) {
	j, _ := openIn(t, written(t), Options{})
	tamper(t, filepath.Dir(j.opts.Store.Path()),
		"DROP INDEX journal_call",
		"CREATE INDEX journal_call ON journal (call) WHERE seq <> 7",
		"PRAGMA writable_schema = on",
		"UPDATE sqlite_schema SET sql = 'CREATE INDEX journal_call ON journal (call)' WHERE name = 'journal_call'",
		"PRAGMA writable_schema = reset",
		"CREATE TABLE news (id)")
	found, err := j.Query(t.Context(), Query{Call: readEnd(6).Call})
	if err != nil || len(found) != 0 {
		t.Fatalf("control: row 7 is found by its call: %v, %v", found, err)
	}
	report, err := j.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Problems) != 1 || !strings.Contains(report.Problems[0].What, "journal_call") {
		t.Errorf("problems = %v, want one that names the index", report.Problems)
	}
}

// TestReportIsBounded damages every second row.
func TestReportIsBounded(t *testing.T) {
	dir := t.TempDir()
	j, closeAll := openIn(t, dir, Options{})
	for i := range 1000 {
		if err := j.End(t.Context(), readEnd(i), false); err != nil {
			t.Fatal(err)
		}
	}
	closeAll()
	tamper(t, dir, "UPDATE journal SET mac = zeroblob(32) WHERE seq % 2 = 0")
	report := verifyIn(t, dir)
	if n := len(report.Problems); n != maxProblems {
		t.Fatalf("%d problems, want %d", n, maxProblems)
	}
	last := report.Problems[maxProblems-1]
	if diff := cmp.Diff(Problem{From: 200, To: 1000, What: "and more problems from here"}, last); diff != "" {
		t.Errorf("the last problem (-want +got):\n%s", diff)
	}
	data, err := json.Marshal(last)
	if want := `{"from":200,"to":1000,"what":"and more problems from here"}`; err != nil || string(data) != want {
		t.Errorf("as JSON %s, %v, want %s", data, err, want)
	}
}

// FuzzVerify makes one change to one row, of any kind, and wants it found at
// that row or a neighbour.
func FuzzVerify(f *testing.F) {
	dir := written(f)
	db := database(f, dir)
	rnd := mathrand.New(mathrand.NewPCG(3, 4))
	for range 1000 {
		f.Add(byte(rnd.Uint32()), byte(rnd.Uint32()), uint16(rnd.Uint32()), byte(rnd.Uint32()))
	}
	f.Fuzz(func(t *testing.T, kind, row byte, at uint16, bit byte) {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }() // nothing is kept
		seq := 2 + int64(row)%(rows-3)
		fg := forger{t, tx}
		rewritten := false
		switch kind % 12 {
		case 0:
			fg.flip("seq", seq, int(at), bit)
		case 1, 2:
			fg.flip("call", seq, int(at), bit)
		case 3, 4, 5:
			fg.flip("body", seq, int(at), bit)
		case 6:
			fg.flip("hash", seq, int(at), bit)
		case 7:
			fg.flip("mac", seq, int(at), bit)
		case 8:
			fg.exec("DELETE FROM journal WHERE seq = ?", seq)
		case 9:
			a, b := fg.row(seq), fg.row(seq+1)
			a.seq, b.seq = b.seq, a.seq
			fg.put(a)
			fg.put(b)
		case 10:
			r := fg.row(seq)
			r.mac = make([]byte, int(bit)%40)
			_, _ = rand.Read(r.mac) // never fails
			fg.put(r)
		case 11:
			fg.rewrite(seq, rows, bit%2 == 0)
			last := fg.row(rows)
			fg.head(func(h *headType) { h.Hash = last.hash }, nil)
			rewritten = true
		}
		check := func(path string) Report {
			var v verifier
			v.prepare(path, filepath.Join(dir, headName))
			if err := v.verify(t.Context(), tx); err != nil {
				t.Fatal(err)
			}
			return v.report
		}
		near := false
		report := check(keyPath(dir))
		for _, p := range report.Problems {
			near = near || p.From >= seq-1 && p.From <= seq+1
		}
		if !near {
			t.Errorf("change %d of row %d was not found there: %v", kind%12, seq, report.Problems)
		}
		if control := check(filepath.Join(dir, "no key")); rewritten && len(control.Problems) != 1 {
			t.Errorf("control: hashes alone found a chain that was computed anew: %v", control.Problems)
		}
	})
}
