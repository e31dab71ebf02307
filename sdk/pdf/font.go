package pdf

import (
	"strings"

	"github.com/ledongthuc/pdf"
)

// maxCodes is how many codes of a font are known.
const maxCodes = 1 << 16

// font decodes the codes of texts. A code has one byte, or two in composite fonts.
type font struct {
	composite bool
	unicode   map[string]string // the font's own table, and what was decoded
	encoding  pdf.TextEncoding  // of simple fonts; nil if there is none
	wide      bool              // codes are UTF-16
	widths    map[int]float64
	other     float64 // the width of other glyphs
}

// plainFont returns the font of text that names none.
func plainFont() *font { return &font{unicode: map[string]string{}, other: 500} }

// readFont reads a font (PDF 32000-1:2008, 9.6 and 9.7).
func readFont(v pdf.Value) *font {
	f := plainFont()
	f.widths = map[int]float64{}
	table := v.Key("ToUnicode")
	if table.Kind() == pdf.Stream {
		f.unicode = readTable(table)
	}
	if v.Key("Subtype").Name() == "Type0" {
		f.composite = true
		f.wide = strings.Contains(v.Key("Encoding").Name(), "UCS2") || strings.Contains(v.Key("Encoding").Name(), "UTF16")
		f.readCompositeWidths(v.Key("DescendantFonts").Index(0))
		return f
	}
	unit := 1.0
	if m := v.Key("FontMatrix"); v.Key("Subtype").Name() == "Type3" && m.Len() == 6 {
		unit = m.Index(0).Float64() * 1000
	}
	first, widths := int(v.Key("FirstChar").Int64()), v.Key("Widths")
	for i := range min(widths.Len(), 256) {
		f.widths[first+i] = widths.Index(i).Float64() * unit
	}
	if v.Key("Encoding").Kind() != pdf.Null || table.Kind() != pdf.Stream { // else it would read the table, too
		f.encoding = (&pdf.Font{V: v}).Encoder()
	}
	return f
}

// readCompositeWidths reads the widths of a composite font: "c [w1 w2 ...]" and "first last w".
func (f *font) readCompositeWidths(v pdf.Value) {
	f.other = 1000
	if w := v.Key("DW"); w.Kind() == pdf.Integer || w.Kind() == pdf.Real {
		f.other = w.Float64()
	}
	list, left := v.Key("W"), maxCodes
	for i := 0; i+1 < list.Len() && left > 0; {
		code, next := int(list.Index(i).Int64()), list.Index(i+1)
		if next.Kind() == pdf.Array {
			for j := 0; j < next.Len() && left > 0; j, left = j+1, left-1 {
				f.widths[code+j] = next.Index(j).Float64()
			}
			i += 2
			continue
		}
		width := list.Index(i + 2).Float64()
		for ; code <= int(next.Int64()) && left > 0; code, left = code+1, left-1 {
			f.widths[code] = width
		}
		i += 3
	}
}

// step returns the number of bytes of a code.
func (f *font) step() int {
	if f.composite {
		return 2
	}
	return 1
}

// width returns the width of a glyph, in thousandths of the size of the font.
func (f *font) width(code string) float64 {
	n := 0
	for i := range len(code) {
		n = n<<8 | int(code[i])
	}
	if w, ok := f.widths[n]; ok {
		return w
	}
	return f.other
}

// decode returns the text of a code.
func (f *font) decode(code string) string {
	if text, ok := f.unicode[code]; ok {
		return text
	}
	text := "\uFFFD"
	switch {
	case f.wide:
		text = utf16Text(code)
	case f.composite:
	case f.encoding != nil:
		text = f.encoding.Decode(code)
	default:
		text = string(rune(code[0]))
	}
	f.unicode[code] = text
	return text
}
