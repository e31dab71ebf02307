// Package lines reads messages that are one line each, of a bounded length.
package lines

import (
	"bufio"
	"errors"
	"io"
)

// ErrTooLong says that a line was longer than the reader takes. It was dropped;
// the next one can be read, if there is one.
var ErrTooLong = errors.New("line too long")

// Reader reads lines. It is for one goroutine at a time.
type Reader struct {
	in   *bufio.Reader
	most int
}

// NewReader returns a reader of lines of at most so many bytes, their ends
// counted.
func NewReader(in io.Reader, most int) *Reader {
	return &Reader{in: bufio.NewReaderSize(in, 64<<10), most: most}
}

// Next returns the next line without its end, in memory of its own. A last line
// without a newline counts. The error is [ErrTooLong], or that of the input:
// io.EOF at its end.
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
