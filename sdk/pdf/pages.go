package pdf

import (
	"fmt"
	"strings"

	"github.com/ledongthuc/pdf"
)

const (
	// maxDepth is how deep the tree of pages may be, and maxNodes how many of its nodes are
	// looked at.
	maxDepth = 64
	maxNodes = 200_000
	// pageSize is what a page counts besides its text, so that pages without text fill a selection.
	pageSize = 40
	// maxPageText is the size of the text of one page in bytes.
	maxPageText = 1 << 20
)

// selection reads the selected pages of a tree.
type selection struct {
	Request
	pages  []Page
	number int // of pages so far
	nodes  int
	size   int              // of the text
	fonts  map[string]*font // by resources and name, since many pages share them
}

// full reports whether no more pages are needed.
func (s *selection) full() bool {
	return s.Last > 0 && s.number >= s.Last || s.size >= s.Bytes || s.nodes > maxNodes
}

// node is a node of the tree: a page, or a list of further nodes.
type node struct {
	value, resources pdf.Value
	isPage           bool
	kids             pdf.Value
	count            int // of pages, as the node tells
}

// look reads a node that inherits resources. Any value of a PDF may be damaged, and then the
// library panics.
func look(find func() pdf.Value, resources pdf.Value) (n node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("read a page: %v", r)
		}
	}()
	v := find()
	n = node{value: v, resources: resources, kids: v.Key("Kids"), count: int(min(max(v.Key("Count").Int64(), 0), 1<<31-1))}
	n.isPage = n.kids.Kind() != pdf.Array
	if own := v.Key("Resources"); own.Kind() == pdf.Dict {
		n.resources = own
	}
	return n, nil
}

// walk goes through a node. It reports whether it came to the end.
func (s *selection) walk(n node, depth int) bool {
	s.nodes++
	if s.full() || depth > maxDepth {
		return false
	}
	if n.isPage {
		s.page(n)
		return true
	}
	if depth > 0 && n.count > 0 && s.number+n.count < s.First {
		s.number += n.count // without a look at each
		return true
	}
	for i := range n.kids.Len() {
		kid, err := look(func() pdf.Value { return n.kids.Index(i) }, n.resources)
		switch {
		case s.full():
			return false
		case err != nil:
			s.add(Page{Number: s.number + 1, Incomplete: true})
		case !s.walk(kid, depth+1):
			return false
		}
	}
	return true
}

// page reads a page if it is selected.
func (s *selection) page(n node) {
	p := Page{Number: s.number + 1}
	if p.Number >= s.First {
		text, complete := s.text(n)
		p.Text, p.Incomplete = strings.TrimSpace(visible(text)), !complete
	}
	s.add(p)
}

// add counts a page, and keeps it if it is selected.
func (s *selection) add(p Page) {
	s.number = p.Number
	if p.Number >= s.First {
		s.size += len(p.Text) + pageSize
		s.pages = append(s.pages, p)
	}
}

// text returns the text of a page, or the part of it up to what cannot be read.
func (s *selection) text(n node) (text string, complete bool) {
	c := content{fonts: s.fonts, ctm: identity}
	defer func() {
		if recover() != nil { // the library, or maxPageText
			text = c.layout.String()
		}
	}()
	c.run(n.value.Key("Contents"), n.resources, 0)
	return c.layout.String(), !c.incomplete
}
