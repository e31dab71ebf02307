package hosttools

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	maxPointer = 1000
	// maxKey bounds the length of property names.
	maxKey = 4 << 10
	// lookAgain is the number of bytes to read between checks whether the call has ended.
	lookAgain = 1 << 20
)

// errNotJSON reports a result that is not JSON.
var errNotJSON = errors.New("not JSON")

// selected returns the range of the value at a JSON pointer (RFC 6901). It reads the result
// once, in bounded memory.
func selected(ctx context.Context, r io.ReaderAt, size int64, pointer string) (from, to int64, err error) {
	if pointer != "" && !strings.HasPrefix(pointer, "/") {
		return 0, 0, tool.Errorf(tool.InvalidArgument, "select: %q is not a JSON pointer", excerpt.Of(pointer, maxShown)).
			WithHint(`begin it with a slash, such as "/items/0/name"; "" is the whole`)
	}
	s := &scanner{ctx: ctx, r: bufio.NewReaderSize(io.NewSectionReader(r, 0, size), maxPiece)}
	var names []string
	if pointer != "" {
		names = strings.Split(pointer[1:], "/")
	}
	for i, name := range names {
		// "first transforming any occurrence of the sequence '~1' to '/', and then
		// transforming any occurrence of the sequence '~0' to '~'" (RFC 6901, section 4)
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
		if err := s.enter(name); err != nil {
			return 0, 0, selectError(err, "/"+strings.Join(names[:i+1], "/"))
		}
	}
	if _, err := s.peek(); err != nil {
		return 0, 0, selectError(err, pointer)
	}
	from = s.offset
	if err := s.skip(); err != nil {
		return 0, 0, selectError(err, pointer)
	}
	return from, s.offset, nil
}

func selectError(err error, pointer string) error {
	pointer = excerpt.Of(pointer, maxShown)
	switch {
	case errors.Is(err, errNotJSON) || errors.Is(err, io.EOF):
		return tool.Errorf(tool.InvalidArgument, "select: the result is not JSON, or was cut before %q", pointer).
			WithHint("read it with cursor or line, or search it with pattern")
	case errors.Is(err, errNoValue):
		return tool.Errorf(tool.NotFound, "select: the result has no %q", pointer).
			WithHint("read the beginning to see what it holds: limit=1000")
	}
	return err
}

// errNoValue reports that a pointer matches no value.
var errNoValue = errors.New("no such value")

// scanner reads JSON to find a value. It checks only the syntax that it needs for that.
type scanner struct {
	ctx    context.Context //nolint:containedctx // the scanner lives as long as one call
	r      *bufio.Reader
	offset int64
}

func (s *scanner) read() (byte, error) {
	c, err := s.r.ReadByte()
	if err != nil {
		return 0, err
	}
	s.offset++
	if s.offset%lookAgain == 0 && s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return c, nil
}

func (s *scanner) back() {
	_ = s.r.UnreadByte() // a byte was read
	s.offset--
}

// peek skips white space and returns the next byte without reading it.
func (s *scanner) peek() (byte, error) {
	for {
		c, err := s.read()
		if err != nil {
			return 0, err
		}
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			s.back()
			return c, nil
		}
	}
}

// enter moves to the property or the item of the next value that has the given name.
func (s *scanner) enter(name string) error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	if c != '{' && c != '[' {
		return errNoValue
	}
	_, _ = s.read()
	index := -1
	if c == '[' {
		if index, err = strconv.Atoi(name); err != nil || strconv.Itoa(index) != name {
			return errNoValue
		}
	}
	for n := 0; ; n++ {
		next, err := s.peek()
		switch {
		case err != nil:
			return err
		case next == '}' || next == ']':
			return errNoValue
		}
		same := n == index
		if c == '{' {
			if same, err = s.key(name); err != nil {
				return err
			}
		}
		if same {
			return nil
		}
		if err := s.skip(); err != nil {
			return err
		}
		if next, err = s.peek(); err != nil {
			return err
		}
		if next == ',' {
			_, _ = s.read()
		}
	}
}

// key reads a property's name and the colon, and reports whether the name is the wanted one.
func (s *scanner) key(name string) (same bool, err error) {
	var text []byte
	if err := s.text(func(c byte) {
		if len(text) < maxKey {
			text = append(text, c)
		}
	}); err != nil {
		return false, err
	}
	c, err := s.peek()
	if err != nil {
		return false, err
	}
	if c != ':' {
		return false, errNotJSON
	}
	_, _ = s.read()
	var key string
	return json.Unmarshal(text, &key) == nil && key == name, nil
}

// text reads a string, including its quotes.
func (s *scanner) text(take func(c byte)) error {
	if c, err := s.read(); err != nil || c != '"' {
		return errors.Join(err, errNotJSON)
	}
	take('"')
	for escaped := false; ; {
		c, err := s.read()
		if err != nil {
			return err
		}
		take(c)
		if c == '"' && !escaped {
			return nil
		}
		escaped = c == '\\' && !escaped
	}
}

// skip reads to the end of the next value.
func (s *scanner) skip() error {
	for depth := 0; ; {
		c, err := s.peek()
		if err != nil {
			return err
		}
		switch c {
		case '"':
			if err := s.text(func(byte) {}); err != nil {
				return err
			}
		case '{', '[':
			depth++
			_, _ = s.read()
		case '}', ']':
			if depth == 0 {
				return errNotJSON
			}
			depth--
			_, _ = s.read()
		case ',', ':':
			if depth == 0 {
				return errNotJSON
			}
			_, _ = s.read()
		default:
			if err := s.word(); err != nil {
				return err
			}
		}
		if depth == 0 {
			return nil
		}
	}
}

// word reads a number, true, false or null.
func (s *scanner) word() error {
	for n := 0; ; n++ {
		c, err := s.read()
		switch {
		case errors.Is(err, io.EOF) && n > 0:
			return nil
		case err != nil:
			return err
		case strings.IndexByte("+-.0123456789abcdefghijklmnopqrstuvwxyzE", c) >= 0:
		case n == 0:
			return errNotJSON
		default:
			s.back()
			return nil
		}
	}
}
