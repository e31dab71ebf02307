package pdf

import (
	"bytes"
	"encoding/hex"
	"io"
	"regexp"
	"strings"
	"unicode/utf16"

	"github.com/ledongthuc/pdf"
)

const (
	// maxTable is how much of a font's table is read.
	maxTable = 1 << 20
	// maxCodeText is the size of the text of one code.
	maxCodeText = 512
)

// tokens finds what matters in a table: codes, brackets of lists, and the ends of sections.
var tokens = regexp.MustCompile(`<[0-9A-Fa-f\s]*>|[\[\]]|(?:begin|end)bf(?:char|range)`)

// table is the table of a font that says which text its codes are.
type table struct {
	text map[string]string
	left int // codes that may be added
}

// readTable reads a table (a ToUnicode CMap; PDF 32000-1:2008, 9.10.3).
func readTable(v pdf.Value) map[string]string {
	t := table{map[string]string{}, maxCodes}
	all, _ := io.ReadAll(io.LimitReader(v.Reader(), maxTable)) // damaged: as far as it can be read
	var section []string
	for _, token := range tokens.FindAll(all, -1) {
		switch text := string(token); text {
		case "beginbfchar", "beginbfrange":
			section = nil
		case "endbfchar":
			for ; len(section) >= 2; section = section[2:] {
				t.add(section[0], section[1])
			}
		case "endbfrange":
			for len(section) >= 3 {
				section = t.addRange(section)
			}
		case "[", "]":
			section = append(section, text)
		default:
			section = append(section, fromHex(token))
		}
	}
	return t.text
}

func (t *table) add(code, text string) {
	if t.left > 0 {
		t.left--
		t.text[code] = utf16Text(text[:min(len(text), maxCodeText)])
	}
}

// addRange adds "first last text", where the text of each further code is one higher, or "first
// last [text ...]". It returns what follows.
func (t *table) addRange(section []string) []string {
	code, last, rest := []byte(section[0]), section[1], section[2:]
	if rest[0] == "[" {
		for rest = rest[1:]; len(rest) > 0 && rest[0] != "]"; rest = rest[1:] {
			t.add(string(code), rest[0])
			increase(code)
		}
		return rest[min(1, len(rest)):]
	}
	for text := []byte(rest[0][:min(len(rest[0]), maxCodeText)]); t.left > 0; increase(text) {
		t.add(string(code), string(text))
		if string(code) >= last || len(code) != len(last) {
			break
		}
		increase(code)
	}
	return rest[1:]
}

// increase adds one to a number, most significant byte first.
func increase(number []byte) {
	for i := len(number) - 1; i >= 0; i-- {
		if number[i]++; number[i] != 0 {
			return
		}
	}
}

// fromHex returns the bytes of a token such as <00 41>.
func fromHex(token []byte) string {
	digits := bytes.Join(bytes.Fields(bytes.Trim(token, "<>")), nil)
	if len(digits)%2 == 1 {
		digits = append(digits, '0')
	}
	raw := make([]byte, hex.DecodedLen(len(digits)))
	if _, err := hex.Decode(raw, digits); err != nil {
		return ""
	}
	return string(raw)
}

// utf16Text returns the text of UTF-16, most significant byte first.
func utf16Text(raw string) string {
	if len(raw) == 1 {
		return string(rune(raw[0]))
	}
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = uint16(raw[2*i])<<8 | uint16(raw[2*i+1])
	}
	return strings.ReplaceAll(string(utf16.Decode(units)), "\x00", "")
}
