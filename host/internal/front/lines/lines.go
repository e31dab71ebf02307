// Package lines reads and writes messages of one line each, with bounds on their length
// and on the time of a writer.
package lines

import (
	"bufio"
	"errors"
	"io"
)

// ErrTooLong means that a line was longer than the reader allows. The line was dropped;
// the next one can be read.
var ErrTooLong = errors.New("line too long")

// Reader reads lines. It is not safe for concurrent use.
type Reader struct {
	in   *bufio.Reader
	most int
}

// NewReader returns a reader of lines of at most most bytes, including their ends.
func NewReader(in io.Reader, most int) *Reader {
	return &Reader{in: bufio.NewReaderSize(in, 64<<10), most: most}
}

// Next returns a copy of the next line, without its end. A last line without a newline is
// a line, too. The error is [ErrTooLong], or the error of the input: io.EOF at its end.
func (r *Reader) Next() ([]byte, error) {
	var data []byte
	long := false
	for {
		part, err := r.in.ReadSlice('\n')
		if long = long || len(data)+len(part) > r.most; !long {
			data = append(data, part...)
		} else {
			data = nil
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, ErrTooLong
		case err != nil && len(data) == 0:
			return nil, err
		}
		return trimEnd(data), nil
	}
}

func trimEnd(data []byte) []byte {
	for len(data) > 0 && (data[len(data)-1] == '\n' || data[len(data)-1] == '\r') {
		data = data[:len(data)-1]
	}
	return data
}
