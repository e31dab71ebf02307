package approval

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

const indent = "  "

// arguments adds JSON, indented. A string continues on a new line after each line
// break, which is shown as \n, too.
func (p *painter) arguments(text json.RawMessage) {
	w := argumentWriter{painter: p, text: text}
	if !w.write() {
		p.omit("the arguments", len(text)-w.pos, text)
	}
}

// argumentWriter splits JSON into lines.
type argumentWriter struct {
	*painter
	text  []byte
	pos   int // how many bytes were shown
	depth int
	line  strings.Builder
	pen   pen
}

// write adds the text and reports whether all of it could be shown.
func (w *argumentWriter) write() bool {
	for w.pos < len(w.text) {
		ok := true
		switch c := w.text[w.pos]; c {
		case ' ', '\t', '\r', '\n':
			w.pos++
		case '{', '[':
			ok = w.open(c)
		case '}', ']':
			w.depth--
			ok = w.breakLine(0) && w.put(1)
		case ',':
			ok = w.put(1) && w.breakLine(0)
		case ':':
			ok = w.put(1)
			w.line.WriteByte(' ')
		case '"':
			ok = w.str()
		default:
			ok = w.put(1)
		}
		if !ok {
			w.end()
			return false
		}
	}
	w.end()
	return true
}

// end adds the last line.
func (w *argumentWriter) end() {
	if strings.TrimSpace(w.line.String()) != "" {
		w.flush()
	}
}

// open starts an object or a list; an empty one stays on one line.
func (w *argumentWriter) open(c byte) bool {
	if next := w.pos + 1; next < len(w.text) && w.text[next] == c+2 { // in ASCII, '}' is '{' plus 2, and ']' is '[' plus 2
		return w.put(2)
	}
	w.depth++
	return w.put(1) && w.breakLine(0)
}

// str adds a string as it is written.
func (w *argumentWriter) str() bool {
	if !w.put(1) {
		return false
	}
	for w.pos < len(w.text) {
		switch w.text[w.pos] {
		case '"':
			return w.put(1)
		case '\\':
			feed := w.pos+1 < len(w.text) && w.text[w.pos+1] == 'n'
			if !w.put(min(2, len(w.text)-w.pos)) {
				return false
			}
			if feed && w.pos < len(w.text) && w.text[w.pos] != '"' && !w.breakLine(2) {
				return false
			}
		default:
			if w.run() {
				continue
			}
			_, size := utf8.DecodeRune(w.text[w.pos:])
			if !w.put(size) {
				return false
			}
		}
	}
	return true
}

// run adds the characters up to the next one that needs care, and reports whether there
// were any.
func (w *argumentWriter) run() bool {
	n := plain(w.text[w.pos:], w.left, '"', '\\')
	if n == 0 {
		return false
	}
	w.line.Write(w.text[w.pos : w.pos+n])
	w.pen.skip(w.text[w.pos+n-1])
	w.pos, w.left = w.pos+n, w.left-n
	return true
}

// put adds the next size bytes: one character, or several of ASCII.
func (w *argumentWriter) put(size int) bool {
	text := string(w.text[w.pos : w.pos+size])
	char, _ := utf8.DecodeRuneInString(text)
	var b strings.Builder
	w.pen.write(&b, char, text)
	if w.left -= b.Len(); w.left < 0 {
		return false
	}
	w.line.WriteString(b.String())
	w.pos += size
	return true
}

// breakLine ends the line and indents the next one by the depth and more steps.
func (w *argumentWriter) breakLine(more int) bool {
	if !w.flush() {
		return false
	}
	spaces := strings.Repeat(indent, max(0, w.depth)+more)
	w.left -= len(spaces)
	w.line.WriteString(spaces)
	return w.left >= 0
}

func (w *argumentWriter) flush() bool {
	w.add(Argument, w.line.String())
	w.line.Reset()
	w.left -= lineCost
	return w.left >= 0
}
