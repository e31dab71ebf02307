package gitrepo

import (
	"errors"
	"fmt"
	"strings"
)

// setting is one setting of a configuration. Section and name are in lower case.
type setting struct {
	section, subsection, name, value string
}

// key is the setting's name as git prints it.
func (s setting) key() string {
	if s.subsection == "" {
		return s.section + "." + s.name
	}
	return s.section + "." + s.subsection + "." + s.name
}

// errSyntax is the error of a text that is not read here; git may.
var errSyntax = errors.New("it is not understood")

// parser reads a configuration as git does.
type parser struct {
	text string // what is left
	line int
}

// parse reads a configuration.
func parse(text []byte) ([]setting, error) {
	if strings.ContainsRune(string(text), 0) {
		return nil, errSyntax
	}
	p := &parser{text: strings.ReplaceAll(string(text), "\r\n", "\n"), line: 1}
	var all []setting
	var in setting
	for {
		p.skip(" \t\n\r\v\f")
		var err error
		switch {
		case p.text == "":
			return all, nil
		case p.text[0] == '#' || p.text[0] == ';':
			p.toLineEnd()
		case p.text[0] == '[':
			in, err = p.header()
		default:
			if in.section == "" {
				err = errSyntax
				break
			}
			s := in
			if s.name, s.value, err = p.entry(); err == nil {
				all = append(all, s)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", p.line, err)
		}
	}
}

func (p *parser) next() byte {
	c := p.text[0]
	if c == '\n' {
		p.line++
	}
	p.text = p.text[1:]
	return c
}

func (p *parser) skip(set string) {
	for p.text != "" && strings.IndexByte(set, p.text[0]) >= 0 {
		p.next()
	}
}

func (p *parser) toLineEnd() {
	for p.text != "" && p.text[0] != '\n' {
		p.next()
	}
}

// word takes letters, digits and the given further characters, in lower case.
func (p *parser) word(further string) string {
	n := 0
	for n < len(p.text) && (letter(p.text[n]) || p.text[n] >= '0' && p.text[n] <= '9' || strings.IndexByte(further, p.text[n]) >= 0) {
		n++
	}
	word := strings.ToLower(p.text[:n])
	p.text = p.text[n:]
	return word
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// header reads [section], [section "subsection"] or [section.subsection].
func (p *parser) header() (setting, error) {
	p.next()
	var s setting
	s.section = p.word("-.")
	section, subsection, dotted := strings.Cut(s.section, ".")
	if dotted {
		s.section, s.subsection = section, subsection
	}
	p.skip(" \t")
	if p.text != "" && p.text[0] == '"' && !dotted {
		p.next()
		var name strings.Builder
		for {
			if p.text == "" || p.text[0] == '\n' {
				return s, errSyntax
			}
			c := p.next()
			if c == '"' {
				break
			}
			if c == '\\' {
				if p.text == "" || p.text[0] == '\n' {
					return s, errSyntax
				}
				c = p.next()
			}
			name.WriteByte(c)
		}
		s.subsection = name.String()
	}
	if s.section == "" || p.text == "" || p.next() != ']' {
		return s, errSyntax
	}
	return s, nil
}

// escapes are the characters that may stand after a backslash in a value.
const escapes = `ntb\"`

// entry reads a name with its value, "true" if it has none.
func (p *parser) entry() (name, value string, err error) {
	if !letter(p.text[0]) {
		return "", "", errSyntax
	}
	name = p.word("-")
	p.skip(" \t")
	if p.text == "" || p.text[0] == '\n' {
		return name, "true", nil
	}
	if p.next() != '=' {
		return "", "", errSyntax
	}
	p.skip(" \t")
	var b strings.Builder
	quoted := false
	for p.text != "" {
		c := p.text[0]
		if c == '\n' {
			if quoted {
				return "", "", errSyntax
			}
			break
		}
		switch p.next(); {
		case !quoted && (c == '#' || c == ';'):
			p.toLineEnd()
			continue
		case c == '"':
			quoted = !quoted
		case c == '\\':
			if p.text == "" {
				return "", "", errSyntax
			}
			e := p.next()
			if e == '\n' {
				continue
			}
			i := strings.IndexByte(escapes, e)
			if i < 0 {
				return "", "", errSyntax
			}
			b.WriteByte("\n\t\b\\\""[i])
		default:
			b.WriteByte(c)
		}
	}
	if quoted {
		return "", "", errSyntax
	}
	return name, strings.TrimRight(b.String(), " \t"), nil
}
