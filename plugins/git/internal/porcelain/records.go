// Package porcelain reads what git writes for programs: records that end in a
// NUL byte, so that names may hold anything else.
package porcelain

import (
	"bytes"
	"fmt"
	"strings"
)

// MaxRecord is how long one record may be.
const MaxRecord = 1 << 20

// Records cuts what is written to it into records that end in a NUL byte, each
// as soon as it is whole. After a failure it takes what comes and does nothing.
type Records struct {
	each func(record []byte) error
	rest []byte
	err  error
}

// NewRecords returns what calls each with every record, without its NUL. The
// record is each's own only until it returns.
func NewRecords(each func(record []byte) error) *Records { return &Records{each: each} }

// Write takes the next part of the output. It never fails: Close tells.
func (r *Records) Write(data []byte) (int, error) {
	size := len(data)
	for r.err == nil {
		before, after, ok := bytes.Cut(data, []byte{0})
		if !ok {
			r.keep(data)
			break
		}
		record := before
		if len(r.rest) > 0 {
			r.keep(record)
			record = r.rest
		}
		if r.err == nil {
			r.err = r.each(record)
		}
		r.rest, data = r.rest[:0], after
	}
	return size, nil
}

func (r *Records) keep(data []byte) {
	if len(r.rest)+len(data) > MaxRecord {
		r.err = fmt.Errorf("a record has more than %d bytes", MaxRecord)
		return
	}
	r.rest = append(r.rest, data...)
}

// Close says what was wrong, or that the last record has no end.
func (r *Records) Close() error {
	if r.err == nil && len(r.rest) > 0 {
		return fmt.Errorf("the output ends within a record: %.80q", r.rest)
	}
	return r.err
}

// fields takes n words off a record, each followed by a space. What remains is a
// name, which may hold spaces.
func fields(record []byte, n int) (words []string, rest string, err error) {
	rest = string(record)
	for range n {
		word, after, ok := strings.Cut(rest, " ")
		if !ok {
			return nil, "", fmt.Errorf("a record has %d words, expected %d and a name: %.80q", len(words), n, record)
		}
		words, rest = append(words, word), after
	}
	return words, rest, nil
}
