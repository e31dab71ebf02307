package store

import (
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/keywords"
	"github.com/toolhost/toolhost/plugins/memory/internal/rank"
)

// A Note is a note as it is stored.
type Note struct {
	// ID is the number of the note in this file; 0 if it is not stored yet.
	ID int64
	// NoteID is the name that callers use.
	NoteID string
	// Key is a name that the caller chose, or "".
	Key      string
	Content  string
	Category rank.Category
	Tags     []string
	Pinned   bool
	// Source, Session and Seq report who said it, in which conversation, and at
	// which position. Seq is -1 if the position is unknown.
	Source  string
	Session string
	Seq     int64
	// Occurred, Expires, Created and Updated are zero if they are unknown.
	Occurred, Expires, Created, Updated time.Time
	// Origin is the client that saved it.
	Origin Origin
	// Passages are the searchable parts of the content. Methods that read notes
	// omit them.
	Passages []Passage
}

// Origin is the client that saved a note.
type Origin struct {
	Client  string `json:"client,omitempty"`
	Session string `json:"session,omitempty"`
}

// A Passage is a part of a note's content.
type Passage struct {
	Start, Stop int
	Terms       []keywords.Term
	// Vector is nil if the passage has none yet.
	Vector []float32
}

// At returns the time at which a note was said or, if that is unknown, last
// written.
func (n *Note) At() time.Time {
	if !n.Occurred.IsZero() {
		return n.Occurred
	}
	return n.Updated
}

// Expired reports whether a note has expired.
func (n *Note) Expired(now time.Time) bool { return !n.Expires.IsZero() && !n.Expires.After(now) }

// ContentHash returns a hash that ignores case and whitespace.
func ContentHash(content string) []byte {
	sum := sha256.Sum256([]byte(strings.ToLower(strings.Join(strings.Fields(content), " "))))
	return sum[:16]
}

// PassageHash returns the hash by which a vector is found for a text.
func PassageHash(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:16]
}

// noteColumns are the columns that scan reads.
const noteColumns = "id, note_id, key, content, category, tags, pinned, source, session, seq, occurred, expires, created, updated, origin"

// scan reads a note.
func scan(row interface{ Scan(...any) error }) (Note, error) {
	var n Note
	var key sql.NullString
	var seq, occurred, expires sql.NullInt64
	var created, updated int64
	var tags, origin string
	err := row.Scan(&n.ID, &n.NoteID, &key, &n.Content, &n.Category, &tags, &n.Pinned, &n.Source, &n.Session, &seq, &occurred, &expires, &created, &updated, &origin)
	if errors.Is(err, sql.ErrNoRows) {
		return Note{}, ErrNotFound
	}
	if err != nil {
		return Note{}, explain(err)
	}
	n.Key, n.Seq = key.String, -1
	if seq.Valid {
		n.Seq = seq.Int64
	}
	n.Occurred, n.Expires = fromMillis(occurred), fromMillis(expires)
	n.Created, n.Updated = time.UnixMilli(created).UTC(), time.UnixMilli(updated).UTC()
	return n, errors.Join(json.Unmarshal([]byte(tags), &n.Tags), json.Unmarshal([]byte(origin), &n.Origin))
}

// values returns the values of noteColumns, without the ID.
func (n *Note) values() ([]any, error) {
	tags, err := json.Marshal(n.Tags)
	if err != nil {
		return nil, err
	}
	if n.Tags == nil {
		tags = []byte("[]")
	}
	origin, err := json.Marshal(n.Origin)
	if err != nil {
		return nil, err
	}
	return []any{
		n.NoteID,
		sql.NullString{String: n.Key, Valid: n.Key != ""},
		n.Content, int(n.Category), string(tags), n.Pinned,
		n.Source, n.Session,
		sql.NullInt64{Int64: n.Seq, Valid: n.Seq >= 0},
		toMillis(n.Occurred), toMillis(n.Expires),
		n.Created.UnixMilli(), n.Updated.UnixMilli(), string(origin),
	}, nil
}

func fromMillis(v sql.NullInt64) time.Time {
	if !v.Valid {
		return time.Time{}
	}
	return time.UnixMilli(v.Int64).UTC()
}

func toMillis(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMilli(), Valid: !t.IsZero()}
}

// encodeTerms encodes terms for a column.
func encodeTerms(terms []keywords.Term) []byte {
	size := 0
	for _, t := range terms {
		size += len(t.Text) + 3
	}
	data := make([]byte, 0, size)
	for _, t := range terms {
		data = binary.AppendUvarint(data, uint64(len(t.Text)))
		data = append(data, t.Text...)
		data = binary.AppendUvarint(data, uint64(t.Count))
	}
	return data
}

// errTerms means that a column of terms is damaged.
var errTerms = errors.New("the terms of a passage are damaged")

// decodeTerms decodes terms. Their texts share one string.
func decodeTerms(data []byte) ([]keywords.Term, error) {
	const usual = 8 // typical bytes of an encoded term
	texts, at := string(data), 0
	terms := make([]keywords.Term, 0, len(data)/usual+1)
	for at < len(data) {
		length, n := binary.Uvarint(data[at:])
		if at += n; n <= 0 || length > uint64(len(data)-at) {
			return nil, errTerms
		}
		text := texts[at : at+int(length)]
		at += int(length)
		count, n := binary.Uvarint(data[at:])
		if at += n; n <= 0 || count > math.MaxInt32 {
			return nil, errTerms
		}
		terms = append(terms, keywords.Term{Text: text, Count: int(count)})
	}
	return terms, nil
}

// encodeVector encodes a vector for a column. A nil vector is NULL.
func encodeVector(v []float32) []byte {
	if v == nil {
		return nil
	}
	data := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(x))
	}
	return data
}

// decodeVector decodes a vector.
func decodeVector(data []byte) []float32 {
	if len(data) < 4 {
		return nil
	}
	v := make([]float32, len(data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return v
}
