package journal

import (
	"context"
	"crypto/hmac"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/state/store"
)

const (
	// headName is the name of the head file, next to the database.
	headName = "journal.head"
	// slotSize keeps the two slots in separate pages. slotText is the written size of a slot.
	slots    = 2
	slotSize = 4096
	slotText = 256
	// headLag limits how long the head file may be written and not synced. A killed process
	// loses nothing; a power failure may lose the writes of this time.
	headLag = time.Second
)

var (
	errNoHeadFile  = tampered("the file " + headName + " is missing")
	errBadHeadFile = tampered("the file " + headName + " was changed, or written with another key")
)

// lastRow is the last row of a journal: its number, which counts all rows ever written, and its
// hash, which depends on all of them.
type lastRow struct {
	Seq  int64  `json:"seq"`
	Hash digest `json:"hash"`
}

// headFile names the last row in a file outside of the database, so that an older copy of the
// database, or a removed write-ahead log, is noticed.
//
// It is written after each commit and before a caller is told, so it is at most one commit behind
// when the process is killed, and never ahead. It has two slots. Writes go to one slot until that
// is synced, then to the other: an interrupted write damages only the slot whose counterpart is on
// disk. Only the writer uses it.
type headFile struct {
	path  string
	chain *chain
	step  func(what string) // called before each step that a crash may prevent
	file  *os.File
	info  fs.FileInfo
	slot  int       // the next write's
	due   time.Time // when to sync the last write; zero if it is on disk
}

func headPath(s *store.Store) string { return filepath.Join(filepath.Dir(s.Path()), headName) }

// makeHeadFile makes or replaces the head file, durably.
func makeHeadFile(path string, c *chain, last lastRow, step func(string)) (*headFile, error) {
	text, err := last.seal(c)
	if err != nil {
		return nil, err
	}
	step("head file: make")
	f, err := os.OpenFile(path+newSuffix, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for slot := range slots {
		if err == nil {
			_, err = f.WriteAt(text, int64(slot*slotSize))
		}
	}
	if err == nil {
		step("head file: sync")
		err = f.Sync()
	}
	if err == nil {
		step("head file: rename")
		err = os.Rename(path+newSuffix, path)
	}
	if err == nil {
		step("head file: sync its name")
		err = syncDir(filepath.Dir(path))
	}
	h := &headFile{path: path, chain: c, step: step, file: f}
	if err == nil {
		h.info, err = f.Stat()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return h, nil
}

// openHeadFile opens the head file and returns its row.
func openHeadFile(path string, c *chain, step func(string)) (*headFile, lastRow, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, lastRow{}, errNoHeadFile
	}
	if err != nil {
		return nil, lastRow{}, err
	}
	h := &headFile{path: path, chain: c, step: step, file: f}
	last, slot, err := readSlots(f, c)
	if err == nil {
		// The slot that was read may not be on disk: the next write goes there too.
		h.slot, h.due = slot, time.Now().Add(headLag)
		h.info, err = f.Stat()
	}
	if err != nil {
		return nil, lastRow{}, errors.Join(err, f.Close())
	}
	return h, last, nil
}

// readHeadFile returns the row of the head file, and changes nothing.
func readHeadFile(path string, c *chain) (lastRow, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return lastRow{}, errNoHeadFile
	}
	if err != nil {
		return lastRow{}, err
	}
	last, _, err := readSlots(f, c)
	return last, errors.Join(err, f.Close())
}

// readSlots returns the newest genuine row of the slots, and its slot.
func readSlots(f io.ReaderAt, c *chain) (last lastRow, newest int, err error) {
	newest = -1
	for slot := range slots {
		text := make([]byte, slotText)
		if n, err := f.ReadAt(text, int64(slot*slotSize)); err != nil && !errors.Is(err, io.EOF) || n < slotText {
			continue // treat an unreadable slot like an interrupted write
		}
		if row, ok := unsealRow(c, string(text)); ok && (newest < 0 || row.Seq > last.Seq) {
			last, newest = row, slot
		}
	}
	if newest < 0 {
		return lastRow{}, 0, errBadHeadFile
	}
	return last, newest, nil
}

// seal returns the row in the form of a slot: a line of JSON and its MAC, padded to slotText.
func (l lastRow) seal(c *chain) ([]byte, error) {
	body, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	text := make([]byte, 0, slotText)
	text = append(append(text, body...), ' ')
	text = append(hex.AppendEncode(text, c.fileMAC(string(body))), '\n')
	return append(text, strings.Repeat(" ", slotText-len(text))...), nil
}

// unsealRow reads a slot, and reports whether the host wrote it.
func unsealRow(c *chain, text string) (l lastRow, ok bool) {
	line, _, _ := strings.Cut(text, "\n")
	body, sum, _ := strings.Cut(line, " ")
	mac, err := hex.DecodeString(sum)
	if err != nil || c.mac == nil || !hmac.Equal(mac, c.fileMAC(body)) {
		return lastRow{}, false
	}
	return l, json.Unmarshal([]byte(body), &l) == nil
}

// write names another last row. It does not wait for the disk. If the file was removed or
// replaced, write makes a new one from the host's memory.
func (h *headFile) write(last lastRow) error {
	text, err := last.seal(h.chain)
	if err != nil {
		return err
	}
	if h.due.IsZero() {
		h.due = time.Now().Add(headLag)
	}
	if now, err := os.Lstat(h.path); err != nil || !os.SameFile(now, h.info) {
		made, err := makeHeadFile(h.path, h.chain, last, h.step)
		if err != nil {
			return err
		}
		old := h.file
		*h = *made
		return old.Close()
	}
	h.step("head file: write")
	_, err = h.file.WriteAt(text, int64(h.slot*slotSize))
	return err
}

// sync syncs the file if something was written.
func (h *headFile) sync() error {
	if h.due.IsZero() {
		return nil
	}
	h.step("head file: sync")
	if err := h.file.Sync(); err != nil {
		h.due = time.Now().Add(headLag)
		return err
	}
	h.slot, h.due = (h.slot+1)%slots, time.Time{}
	return nil
}

// disagrees returns the mistake in a database that ends with h, if the journal once ended with
// l; "" if there is none.
func (l lastRow) disagrees(ctx context.Context, db querier, h head) (what string, err error) {
	var got digest
	switch {
	case l.Seq > h.Seq:
		return fmt.Sprintf("the database is older than %s: it ends with row %d, but had row %d; it was replaced by an older copy, or its file -wal was removed",
			headName, h.Seq, l.Seq), nil
	case l.Seq < h.AnchorSeq:
		return "", nil // retention removed the row
	case l.Seq == h.Seq:
		got = h.Hash
	case l.Seq == h.AnchorSeq:
		got = h.AnchorHash
	default:
		var column []byte
		err := db.QueryRowContext(ctx, "SELECT hash FROM journal WHERE seq = ?", l.Seq).Scan(&column)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return "", err
		}
		got, _ = asDigest(column)
	}
	if got != l.Hash {
		return fmt.Sprintf("row %d is not the one that %s names: the database was replaced", l.Seq, headName), nil
	}
	return "", nil
}
