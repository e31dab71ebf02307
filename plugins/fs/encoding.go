package main

import (
	"bytes"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/toolhost/toolhost/plugins/fs/internal/dfa"
	"github.com/toolhost/toolhost/sdk/tool"
)

// headSize is how much of a file is looked at to tell what it holds.
const headSize = 8 << 10

// encodingNames is the enum of read_file's encoding.
const encodingNames = "auto,utf-8,utf-16,utf-16le,utf-16be,latin1,windows-1252,shift_jis,gbk"

// charset is how the bytes of a file become text.
type charset struct {
	name string
	// bom is how many bytes stand before the text.
	bom int
	// decoder is nil for UTF-8, which is taken as it is.
	decoder encoding.Encoding
	// unit is the size of what a line break is aligned to.
	unit int
}

var (
	markUTF8 = []byte("\xEF\xBB\xBF")
	markLE   = []byte("\xFF\xFE")
	markBE   = []byte("\xFE\xFF")
	markLE32 = []byte("\xFF\xFE\x00\x00") // before markLE, which is its beginning
	markBE32 = []byte("\x00\x00\xFE\xFF")
)

// detectCharset finds the charset by the head of a file: a byte order mark,
// valid UTF-8, or else windows-1252, which covers latin1 and knows every byte.
// It is not ok if the head is not text.
func detectCharset(head []byte, whole bool) (c charset, ok bool) {
	switch {
	case bytes.HasPrefix(head, markUTF8):
		return charset{name: "utf-8", bom: len(markUTF8), unit: 1}, true
	case bytes.HasPrefix(head, markLE32):
		return charset{name: "utf-32le", bom: len(markLE32), decoder: utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), unit: 4}, true
	case bytes.HasPrefix(head, markBE32):
		return charset{name: "utf-32be", bom: len(markBE32), decoder: utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), unit: 4}, true
	case bytes.HasPrefix(head, markLE):
		return utf16(unicode.LittleEndian, len(markLE)), true
	case bytes.HasPrefix(head, markBE):
		return utf16(unicode.BigEndian, len(markBE)), true
	case bytes.IndexByte(head, 0) >= 0:
		return charset{}, false
	case utf8.Valid(head), !whole && utf8.Valid(dfa.TrimRune(head)): // its last character may be cut
		return charset{name: "utf-8", unit: 1}, true
	default:
		return charset{name: "windows-1252", decoder: charmap.Windows1252, unit: 1}, true
	}
}

// foreignRunes are those that bytes which are not UTF-8 may stand for, read as
// windows-1252 or as none.
func foreignRunes() []rune {
	runes := []rune{utf8.RuneError}
	for b := utf8.RuneSelf; b < 256; b++ {
		runes = append(runes, charmap.Windows1252.DecodeByte(byte(b)))
	}
	return runes
}

// namedCharset returns the charset that a caller asked for.
func namedCharset(name string, head []byte) (charset, error) {
	switch name {
	case "utf-8":
		c := charset{name: name, unit: 1}
		if bytes.HasPrefix(head, markUTF8) {
			c.bom = len(markUTF8)
		}
		return c, nil
	case "utf-16":
		if bytes.HasPrefix(head, markBE) {
			return utf16(unicode.BigEndian, len(markBE)), nil
		}
		return namedCharset("utf-16le", head)
	case "utf-16le":
		if bytes.HasPrefix(head, markLE) {
			return utf16(unicode.LittleEndian, len(markLE)), nil
		}
		return utf16(unicode.LittleEndian, 0), nil
	case "utf-16be":
		if bytes.HasPrefix(head, markBE) {
			return utf16(unicode.BigEndian, len(markBE)), nil
		}
		return utf16(unicode.BigEndian, 0), nil
	case "latin1":
		return charset{name: name, decoder: charmap.ISO8859_1, unit: 1}, nil
	case "windows-1252":
		return charset{name: name, decoder: charmap.Windows1252, unit: 1}, nil
	case "shift_jis":
		return charset{name: name, decoder: japanese.ShiftJIS, unit: 1}, nil
	case "gbk":
		return charset{name: name, decoder: simplifiedchinese.GBK, unit: 1}, nil
	default:
		return charset{}, tool.Errorf(tool.InvalidArgument, "unknown encoding %q", name).WithHint("one of %s", encodingNames)
	}
}

func utf16(order unicode.Endianness, bom int) charset {
	name := "utf-16le"
	if order == unicode.BigEndian {
		name = "utf-16be"
	}
	return charset{name: name, bom: bom, decoder: unicode.UTF16(order, unicode.IgnoreBOM), unit: 2}
}

// text returns r, which stands after the byte order mark, as UTF-8.
func (c charset) text(r io.Reader) io.Reader {
	if c.decoder == nil {
		return r
	}
	return c.decoder.NewDecoder().Reader(r)
}

// decode returns all of a file as text, without its byte order mark.
func (c charset) decode(data []byte) (string, error) {
	data = data[min(c.bom, len(data)):]
	if c.decoder == nil {
		return string(data), nil
	}
	text, err := c.decoder.NewDecoder().Bytes(data)
	return string(text), err
}

// loses reports whether text, which was decoded, shows U+FFFD for bytes that
// are not of the charset.
func (c charset) loses(text []byte) bool {
	if c.decoder == nil {
		return !utf8.Valid(text)
	}
	return c.unit == 1 && bytes.ContainsRune(text, utf8.RuneError) // which none of these can write
}

// keeps reports whether text, which was decoded of data, is written as data again.
func (c charset) keeps(text string, data []byte) bool {
	data = data[min(c.bom, len(data)):]
	if c.decoder == nil {
		return text == string(data)
	}
	again, err := c.encode(text)
	return err == nil && bytes.Equal(again, data)
}

// encode returns text as the file holds it, after the byte order mark. The
// error says that a character cannot be written so.
func (c charset) encode(text string) ([]byte, error) {
	if c.decoder == nil {
		return []byte(text), nil
	}
	if !utf8.ValidString(text) {
		return nil, encoding.ErrInvalidUTF8
	}
	return c.decoder.NewEncoder().Bytes([]byte(text))
}
