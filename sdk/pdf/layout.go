package pdf

import (
	"math"
	"strings"
)

// layout finds the ends of words and lines by the places of glyphs.
type layout struct {
	out  strings.Builder
	x, y float64 // the end of the last glyph
}

// String returns the text.
func (l *layout) String() string { return l.out.String() }

// add adds a glyph whose text space is at. Its width is in units of that space.
func (l *layout) add(text string, at matrix, width float64) {
	// The direction of writing, and the height of the glyph.
	length, size := math.Hypot(at.a, at.b), max(math.Hypot(at.c, at.d), 1)
	ux, uy := 1.0, 0.0
	if length > 0 {
		ux, uy = at.a/length, at.b/length
	}
	dx, dy := at.e-l.x, at.f-l.y
	along, down := dx*ux+dy*uy, math.Abs(dx*uy-dy*ux)
	switch {
	case l.out.Len() == 0:
	case down > 1.8*size:
		l.out.WriteString("\n\n")
	case down > 0.5*size:
		l.out.WriteByte('\n')
	case along > 0.15*size || along < -size:
		l.space()
	}
	l.out.WriteString(text)
	l.x, l.y = at.e+width*at.a, at.f+width*at.b
}

// space ends a word.
func (l *layout) space() {
	if !strings.HasSuffix(l.out.String(), " ") {
		l.out.WriteByte(' ')
	}
}
