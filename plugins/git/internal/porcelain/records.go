// Package porcelain parses the output formats that git has for programs. Most consist
// of records that end with a NUL byte, so that names can contain any other byte.
package porcelain

import (
	"bytes"
	"fmt"
	"strings"
)

// MaxRecord is the maximum length of a record in bytes.
const MaxRecord = 1 << 20

// Records splits its input into records that end with a NUL byte. After an error it
// ignores further input.
type Records struct {
	each func(record []byte) error
	rest []byte
	err  error
}

// NewRecords returns a Records that calls each for every record, without the NUL byte.
// The record is valid only until each returns.
func NewRecords(each func(record []byte) error) *Records { return &Records{each: each} }

// Write parses the next part of the output. It always succeeds; Close returns the error.
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
		r.err = fmt.Errorf("a record is longer than %d bytes", MaxRecord)
		return
	}
	r.rest = append(r.rest, data...)
}

// Close returns the first error of Write, or an error if the last record is incomplete.
func (r *Records) Close() error {
	if r.err == nil && len(r.rest) > 0 {
		return fmt.Errorf("the output ends within a record: %.80q", r.rest)
	}
	return r.err
}

// fields splits off the first n words of a record, each followed by a space. The rest is
// a name, which can contain spaces.
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
