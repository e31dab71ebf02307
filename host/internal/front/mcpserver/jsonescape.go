package mcpserver

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// appendJSONString appends text as a JSON string. It escapes like encoding/json without HTML
// escapes. For texts with few escapes, which most are, it takes a third of the time.
func appendJSONString(to, text []byte) []byte {
	to = append(to, '"')
	written := 0
	for at := 0; at < len(text); {
		if text[at] < utf8.RuneSelf {
			at += unescaped(text[at:])
			if at == len(text) {
				break
			}
		}
		r, size := utf8.DecodeRune(text[at:])
		if isEscaped(r, size) {
			to = appendEscape(append(to, text[written:at]...), r)
			written = at + size
		}
		at += size
	}
	return append(append(to, text[written:]...), '"')
}

// unescaped counts the ASCII characters at the start of text that need no escape. It reads
// eight bytes at a time and sets the highest bit in found for each byte that needs one.
func unescaped(text []byte) int {
	const ones, highest = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; len(text)-n >= 8; n += 8 {
		eight := binary.LittleEndian.Uint64(text[n:])
		control := eight - ' '*ones
		quote := eight ^ '"'*ones - ones
		backslash := eight ^ '\\'*ones - ones
		// A borrow from the next byte happens only after a byte that already counts as found.
		if found := (eight | control | quote | backslash) & highest; found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for n < len(text) && text[n] < utf8.RuneSelf && !isEscaped(rune(text[n]), 1) {
		n++
	}
	return n
}

// isEscaped reports whether JSON strings must escape a character. An invalid byte has size 1.
func isEscaped(r rune, size int) bool {
	return r < ' ' || r == '"' || r == '\\' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError && size == 1
}

// appendEscape appends the escape of a character of at most 16 bits.
func appendEscape(to []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	switch r {
	case '"', '\\':
		return append(to, '\\', byte(r))
	case '\b':
		return append(to, `\b`...)
	case '\f':
		return append(to, `\f`...)
	case '\n':
		return append(to, `\n`...)
	case '\r':
		return append(to, `\r`...)
	case '\t':
		return append(to, `\t`...)
	default:
		return append(to, '\\', 'u', digits[r>>12], digits[r>>8&15], digits[r>>4&15], digits[r&15])
	}
}
