package journal

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// digest is a SHA-256 hash. Before the first row the chain has the zero digest.
type digest [sha256.Size]byte

// String returns the digest as in records.
func (d digest) String() string { return "sha256:" + hex.EncodeToString(d[:]) }

// MarshalText implements [encoding.TextMarshaler].
func (d digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *digest) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(d) {
		return fmt.Errorf("a digest has %d hexadecimal digits", hex.EncodedLen(len(d)))
	}
	_, err := hex.Decode(d[:], text)
	return err
}

// asDigest returns the digest in a column.
func asDigest(column []byte) (d digest, ok bool) {
	return d, copy(d[:], column) == len(d) && len(column) == len(d)
}

// The domains separate the kinds of MACs: the MAC of an old row is not valid for a head
// that ends there, and that of an old head not for a head file.
const (
	rowDomain  = "toolhost journal row 1\x00"
	headDomain = "toolhost journal head 1\x00"
	fileDomain = "toolhost journal head file 1\x00"
)

// chain computes hashes and MACs. It is not safe for concurrent use.
type chain struct {
	mac hash.Hash // nil without a key
	buf []byte
}

func newChain(key []byte) *chain {
	if key == nil {
		return &chain{}
	}
	return &chain{mac: hmac.New(sha256.New, key)}
}

// content returns the digest of everything that is stored of a row except its hash and MAC. The
// length separates the columns.
func (c *chain) content(seq int64, call, body string) digest {
	b := binary.BigEndian.AppendUint64(c.buf[:0], uint64(seq))
	b = binary.BigEndian.AppendUint64(b, uint64(len(call)))
	b = append(b, call...)
	b = append(b, body...)
	c.buf = b
	return sha256.Sum256(b)
}

// link returns the hash of a row after the one with hash prev.
func (c *chain) link(prev, content digest) digest {
	return sha256.Sum256(append(append(c.buf[:0], prev[:]...), content[:]...))
}

// rowMAC returns the MAC of a row. It covers the content too, so that a row can be checked when the
// one before is gone.
func (c *chain) rowMAC(content, hash digest) []byte {
	c.mac.Reset()
	b := append(c.buf[:0], rowDomain...)
	b = append(b, content[:]...)
	c.mac.Write(append(b, hash[:]...))
	return c.mac.Sum(nil)
}

// headMAC returns the MAC of a head's body.
func (c *chain) headMAC(body string) []byte { return c.textMAC(headDomain, body) }

// fileMAC returns the MAC of a slot's body in the head file.
func (c *chain) fileMAC(body string) []byte { return c.textMAC(fileDomain, body) }

func (c *chain) textMAC(domain, text string) []byte {
	c.mac.Reset()
	c.mac.Write(append(append(c.buf[:0], domain...), text...))
	return c.mac.Sum(nil)
}

// head says where the journal begins and ends. It is a value: each commit makes a new one.
type head struct {
	// Seq, Hash and Time are those of the last row; 0 if there was none yet.
	Seq  int64     `json:"seq"`
	Hash digest    `json:"hash"`
	Time time.Time `json:"time,omitzero"`
	// AnchorSeq and AnchorHash identify the last row that retention removed; 0 if there is none.
	// The first kept row follows it.
	AnchorSeq  int64  `json:"anchor_seq"`
	AnchorHash digest `json:"anchor_hash"`
	// OpenFrom is the first start without an end; 0 if there is none.
	OpenFrom int64 `json:"open_from"`
	// Bytes is the size of the kept rows; see rowSize.
	Bytes int64 `json:"bytes"`
	// Filed reports that there is a head file: without it the journal is refused.
	Filed bool `json:"filed,omitzero"`
}

// seal returns the head as it is stored.
func (h head) seal(c *chain) (body string, mac []byte, err error) {
	b, err := json.Marshal(h)
	if err != nil {
		return "", nil, err
	}
	return string(b), c.headMAC(string(b)), nil
}

// unsealHead reads a stored head, and reports whether its MAC is correct.
func unsealHead(c *chain, body string, mac []byte) (h head, genuine bool, err error) {
	if err := json.Unmarshal([]byte(body), &h); err != nil {
		return head{}, false, fmt.Errorf("head of the journal: %w", err)
	}
	return h, c.mac != nil && hmac.Equal(mac, c.headMAC(body)), nil
}

// rowSize is the size of a row in the journal: its texts, and an estimate of the database's
// overhead.
func rowSize(call, body string) int64 { return int64(2*len(call)+len(body)) + 64 }

const (
	keySize = 32
	// newSuffix marks a key whose journal has not begun.
	newSuffix = ".new"
)

// errNoKey reports that the key's file does not exist.
var errNoKey = errors.New("the key is missing")

// readKey reads a key that only its owner may read.
func readKey(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: there is no file %s", errNoKey, path)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > 2*keySize+1:
		return nil, fmt.Errorf("%s is not a key", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s can be read by others (mode %v): chmod 600 %s", path, info.Mode().Perm(), path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(key) != keySize {
		return nil, fmt.Errorf("%s is not a key: it should hold %d hexadecimal digits", path, 2*keySize)
	}
	return key, nil
}

// makeKey makes a durable key in a separate file.
func makeKey(path string) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(append(hex.AppendEncode(nil, key), '\n'))
	return key, errors.Join(err, f.Sync(), f.Close(), syncDir(filepath.Dir(path)))
}

// keepKey gives the key its final name. From then on, a missing journal was removed.
func keepKey(path string) error {
	if err := os.Rename(path+newSuffix, path); err != nil { //nolint:gosec // the path is the operator's
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the path is the operator's
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
