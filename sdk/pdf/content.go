package pdf

import (
	"errors"

	"github.com/ledongthuc/pdf"
)

const (
	// maxForms is how many forms a page may draw, and maxFormDepth how deep they may be in
	// each other.
	maxForms     = 1000
	maxFormDepth = 8
	// maxSaved is how many states a page may save.
	maxSaved = 1000
)

// errLong ends a page that is too long.
var errLong = errors.New("the page is too long")

// matrix maps a point (x, y) to (ax+cy+e, bx+dy+f).
type matrix struct{ a, b, c, d, e, f float64 }

var identity = matrix{a: 1, d: 1}

// times returns the matrix that maps by m and then by n.
func (m matrix) times(n matrix) matrix {
	return matrix{
		m.a*n.a + m.b*n.c, m.a*n.b + m.b*n.d,
		m.c*n.a + m.d*n.c, m.c*n.b + m.d*n.d,
		m.e*n.a + m.f*n.c + n.e, m.e*n.b + m.f*n.d + n.f,
	}
}

// content interprets the operators of a page that show text (PDF 32000-1:2008, 9.4).
type content struct {
	fonts  map[string]*font
	layout layout
	forms  int
	// incomplete means that a form could not be read.
	incomplete bool

	state
	ctm       matrix
	text      matrix // of the next glyph
	line      matrix // of the beginning of the line
	resources pdf.Value
	depth     int
	saved     []saved
}

// state is the state of text.
type state struct {
	font                             *font
	size, spacing, wordSpacing, rise float64
	leading                          float64
	narrow                           float64 // horizontal scaling less 1
}

type saved struct {
	state
	ctm matrix
}

// run interprets the content of a page or form.
func (c *content) run(stream, resources pdf.Value, depth int) {
	if stream.Kind() != pdf.Stream && stream.Kind() != pdf.Array {
		return // an empty page
	}
	c.resources, c.depth = resources, depth
	pdf.Interpret(stream, func(stack *pdf.Stack, operator string) {
		args := make([]pdf.Value, stack.Len())
		for i := len(args) - 1; i >= 0; i-- {
			args[i] = stack.Pop()
		}
		c.operate(operator, operands(args))
	})
}

// operands are the operands of an operator. One that is missing is 0.
type operands []pdf.Value

func (o operands) at(i int) pdf.Value {
	if i < len(o) {
		return o[i]
	}
	return pdf.Value{}
}

func (o operands) number(i int) float64 { return o.at(i).Float64() }

func (o operands) matrix() matrix {
	return matrix{o.number(0), o.number(1), o.number(2), o.number(3), o.number(4), o.number(5)}
}

func (c *content) operate(operator string, o operands) {
	switch operator {
	case "q":
		if len(c.saved) < maxSaved {
			c.saved = append(c.saved, saved{c.state, c.ctm})
		}
	case "Q":
		if n := len(c.saved) - 1; n >= 0 {
			c.state, c.ctm, c.saved = c.saved[n].state, c.saved[n].ctm, c.saved[:n]
		}
	case "cm":
		c.ctm = o.matrix().times(c.ctm)
	case "Do":
		c.form(o.at(0).Name())
	case "BT":
		c.text, c.line = identity, identity
	case "Tf":
		c.font, c.size = c.findFont(o.at(0).Name()), o.number(1)
	case "Tc":
		c.spacing = o.number(0)
	case "Tw":
		c.wordSpacing = o.number(0)
	case "Tz":
		c.narrow = o.number(0)/100 - 1
	case "TL":
		c.leading = o.number(0)
	case "Ts":
		c.rise = o.number(0)
	default:
		c.showText(operator, o)
	}
}

// showText interprets the operators that move to a place or show text there.
func (c *content) showText(operator string, o operands) {
	switch operator {
	case "Tm":
		c.text, c.line = o.matrix(), o.matrix()
	case "Td":
		c.moveLine(o.number(0), o.number(1))
	case "TD":
		c.leading = -o.number(1)
		c.moveLine(o.number(0), o.number(1))
	case "T*":
		c.moveLine(0, -c.leading)
	case "Tj":
		c.show(o.at(0).RawString())
	case "'":
		c.moveLine(0, -c.leading)
		c.show(o.at(0).RawString())
	case `"`:
		c.wordSpacing, c.spacing = o.number(0), o.number(1)
		c.moveLine(0, -c.leading)
		c.show(o.at(2).RawString())
	case "TJ":
		for i := range o.at(0).Len() {
			if v := o.at(0).Index(i); v.Kind() == pdf.String {
				c.show(v.RawString())
			} else {
				c.advance(-v.Float64() / 1000 * c.size)
			}
		}
	}
}

// moveLine begins a line at an offset from the beginning of the last one.
func (c *content) moveLine(x, y float64) {
	c.line = matrix{1, 0, 0, 1, x, y}.times(c.line)
	c.text = c.line
}

// advance moves along the line.
func (c *content) advance(x float64) {
	c.text = matrix{1, 0, 0, 1, x * (1 + c.narrow), 0}.times(c.text)
}

// show shows a text in the codes of the font.
func (c *content) show(codes string) {
	if c.font == nil {
		c.font = plainFont()
	}
	step := c.font.step()
	for ; len(codes) >= step; codes = codes[step:] {
		code := codes[:step]
		width := c.font.width(code) / 1000
		at := matrix{c.size * (1 + c.narrow), 0, 0, c.size, 0, c.rise}.times(c.text).times(c.ctm)
		c.layout.add(c.font.decode(code), at, width)
		if c.layout.out.Len() > maxPageText {
			panic(errLong)
		}
		x := width*c.size + c.spacing
		if code == " " {
			x += c.wordSpacing
		}
		c.advance(x)
	}
}

// form draws a form, which is content of its own.
func (c *content) form(name string) {
	form := c.resources.Key("XObject").Key(name)
	if form.Key("Subtype").Name() != "Form" || c.depth >= maxFormDepth || c.forms >= maxForms {
		return
	}
	c.forms++
	outer := *c
	defer func() {
		r := recover()
		incomplete := c.incomplete || r != nil
		c.state, c.ctm, c.text, c.line, c.saved = outer.state, outer.ctm, outer.text, outer.line, outer.saved
		c.resources, c.depth, c.incomplete = outer.resources, outer.depth, incomplete
		if r == any(errLong) {
			panic(r)
		}
	}()
	if m := form.Key("Matrix"); m.Len() == 6 {
		var o operands
		for i := range 6 {
			o = append(o, m.Index(i))
		}
		c.ctm = o.matrix().times(c.ctm)
	}
	resources := form.Key("Resources")
	if resources.Kind() != pdf.Dict {
		resources = c.resources
	}
	c.saved = nil
	c.run(form, resources, c.depth+1)
}

// findFont returns a font of the resources.
func (c *content) findFont(name string) *font {
	fonts := c.resources.Key("Font")
	key := fonts.String() + "/" + name // names the objects of the fonts
	if f, ok := c.fonts[key]; ok {
		return f
	}
	f := readFont(fonts.Key(name))
	c.fonts[key] = f
	return f
}
