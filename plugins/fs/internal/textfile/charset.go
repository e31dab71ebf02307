// Package textfile reads the text of files: it detects the encoding of a file, decodes
// and encodes its text, and returns windows of lines without holding the whole file in
// memory.
package textfile

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

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// HeadSize is how many bytes of a file are read to detect its kind.
const HeadSize = 8 << 10

// encodingNames are the encodings that a caller may name.
const encodingNames = "auto,utf-8,utf-16,utf-16le,utf-16be,latin1,windows-1252,shift_jis,gbk"

// Charset is an encoding of text.
type Charset struct {
	// Name is the name of the encoding, such as "utf-8".
	Name string
	// BOM is the size of the byte order mark.
	BOM int
	// Decoder is nil for UTF-8, which is returned as it is.
	Decoder encoding.Encoding
	// Unit is the size of a line feed in bytes.
	Unit int
}

var (
	// MarkUTF8 is the byte order mark of UTF-8.
	MarkUTF8 = []byte("\xEF\xBB\xBF")
	markLE   = []byte("\xFF\xFE")
	markBE   = []byte("\xFE\xFF")
	markLE32 = []byte("\xFF\xFE\x00\x00") // before markLE, which is its beginning
	markBE32 = []byte("\x00\x00\xFE\xFF")
)

// Detect detects the encoding of a file from its head: by a byte order mark, as valid
// UTF-8, or else as windows-1252, which covers latin1 and every byte. whole means that
// head is the whole file. Detect reports false if head is not text.
func Detect(head []byte, whole bool) (c Charset, ok bool) {
	switch {
	case bytes.HasPrefix(head, MarkUTF8):
		return Charset{Name: "utf-8", BOM: len(MarkUTF8), Unit: 1}, true
	case bytes.HasPrefix(head, markLE32):
		return Charset{Name: "utf-32le", BOM: len(markLE32), Decoder: utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), Unit: 4}, true
	case bytes.HasPrefix(head, markBE32):
		return Charset{Name: "utf-32be", BOM: len(markBE32), Decoder: utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), Unit: 4}, true
	case bytes.HasPrefix(head, markLE):
		return UTF16(unicode.LittleEndian, len(markLE)), true
	case bytes.HasPrefix(head, markBE):
		return UTF16(unicode.BigEndian, len(markBE)), true
	case bytes.IndexByte(head, 0) >= 0:
		return Charset{}, false
	case utf8.Valid(head), !whole && utf8.Valid(display.TrimPartial(head)): // its last character may be cut
		return Charset{Name: "utf-8", Unit: 1}, true
	default:
		return Charset{Name: "windows-1252", Decoder: charmap.Windows1252, Unit: 1}, true
	}
}

// ForeignRunes returns the characters that bytes other than UTF-8 may become, decoded as
// windows-1252 or not decoded.
func ForeignRunes() []rune {
	runes := []rune{utf8.RuneError}
	for b := utf8.RuneSelf; b < 256; b++ {
		runes = append(runes, charmap.Windows1252.DecodeByte(byte(b)))
	}
	return runes
}

// Named returns the encoding that a caller named.
func Named(name string, head []byte) (Charset, error) {
	switch name {
	case "utf-8":
		c := Charset{Name: name, Unit: 1}
		if bytes.HasPrefix(head, MarkUTF8) {
			c.BOM = len(MarkUTF8)
		}
		return c, nil
	case "utf-16":
		if bytes.HasPrefix(head, markBE) {
			return UTF16(unicode.BigEndian, len(markBE)), nil
		}
		return Named("utf-16le", head)
	case "utf-16le":
		if bytes.HasPrefix(head, markLE) {
			return UTF16(unicode.LittleEndian, len(markLE)), nil
		}
		return UTF16(unicode.LittleEndian, 0), nil
	case "utf-16be":
		if bytes.HasPrefix(head, markBE) {
			return UTF16(unicode.BigEndian, len(markBE)), nil
		}
		return UTF16(unicode.BigEndian, 0), nil
	case "latin1":
		return Charset{Name: name, Decoder: charmap.ISO8859_1, Unit: 1}, nil
	case "windows-1252":
		return Charset{Name: name, Decoder: charmap.Windows1252, Unit: 1}, nil
	case "shift_jis":
		return Charset{Name: name, Decoder: japanese.ShiftJIS, Unit: 1}, nil
	case "gbk":
		return Charset{Name: name, Decoder: simplifiedchinese.GBK, Unit: 1}, nil
	default:
		return Charset{}, tool.Errorf(tool.InvalidArgument, "unknown encoding %q", name).WithHint("one of %s", encodingNames)
	}
}

// UTF16 returns UTF-16 of a byte order, with a byte order mark of so many bytes.
func UTF16(order unicode.Endianness, bom int) Charset {
	name := "utf-16le"
	if order == unicode.BigEndian {
		name = "utf-16be"
	}
	return Charset{Name: name, BOM: bom, Decoder: unicode.UTF16(order, unicode.IgnoreBOM), Unit: 2}
}

// Text returns a reader of r as UTF-8. r starts after the byte order mark.
func (c Charset) Text(r io.Reader) io.Reader {
	if c.Decoder == nil {
		return r
	}
	return c.Decoder.NewDecoder().Reader(r)
}

// Decode returns the whole text of a file without its byte order mark.
func (c Charset) Decode(data []byte) (string, error) {
	data = data[min(c.BOM, len(data)):]
	if c.Decoder == nil {
		return string(data), nil
	}
	text, err := c.Decoder.NewDecoder().Bytes(data)
	return string(text), err
}

// Loses reports whether decoded text has U+FFFD for bytes that are not valid in the
// encoding.
func (c Charset) Loses(text []byte) bool {
	if c.Decoder == nil {
		return !utf8.Valid(text)
	}
	return c.Unit == 1 && bytes.ContainsRune(text, utf8.RuneError) // none of these can write it
}

// Keeps reports whether text, decoded from data, encodes to data again.
func (c Charset) Keeps(text string, data []byte) bool {
	data = data[min(c.BOM, len(data)):]
	if c.Decoder == nil {
		return text == string(data)
	}
	again, err := c.Encode(text)
	return err == nil && bytes.Equal(again, data)
}

// Encode returns text in the encoding, without a byte order mark. It is an error if the
// encoding lacks a character of the text.
func (c Charset) Encode(text string) ([]byte, error) {
	if c.Decoder == nil {
		return []byte(text), nil
	}
	if !utf8.ValidString(text) {
		return nil, encoding.ErrInvalidUTF8
	}
	return c.Decoder.NewEncoder().Bytes([]byte(text))
}

// Describe returns the name of the encoding, and whether there is a byte order mark.
func (c Charset) Describe() string {
	if c.BOM > 0 {
		return c.Name + " with a byte order mark"
	}
	return c.Name
}
