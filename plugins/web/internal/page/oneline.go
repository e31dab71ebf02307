package page

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// oneLine replaces the blocks in a cell by line breaks, which the Markdown library writes
// as <br />: a cell of a Markdown table is one line.
func oneLine(cell *html.Node) {
	var w lineWriter
	w.children(cell, false)
}

// lineWriter goes through the content of a cell in order.
type lineWriter struct {
	begun  bool       // the cell has content before the current place
	parent *html.Node // where a line break is due, if more content comes; nil for nowhere
	before *html.Node // the child of parent before which it is due; nil for its end
}

func (w *lineWriter) children(n *html.Node, code bool) {
	for child := n.FirstChild; child != nil; {
		next := child.NextSibling
		w.node(child, code)
		child = next
	}
}

// node goes through one node. code reports whether it is in code, where the library does
// not escape.
func (w *lineWriter) node(n *html.Node, code bool) {
	if n.Type == html.TextNode {
		if strings.TrimSpace(n.Data) != "" {
			w.content()
		}
		if code {
			n.Data = strings.ReplaceAll(n.Data, "|", `\|`)
		}
		return
	}
	switch n.DataAtom { //nolint:exhaustive // other elements need nothing
	case atom.Br, atom.Hr:
		w.due(n.Parent, n.NextSibling)
		n.Parent.RemoveChild(n)
	case atom.Img:
		w.content()
	case atom.Code, atom.Tt, atom.Kbd, atom.Samp, atom.Var:
		w.children(n, true)
	case atom.Td, atom.Th: // of a table in the cell
		n.Parent.InsertBefore(text(" "), n)
		rename(n, atom.Span)
		w.children(n, code)
	case atom.Li:
		n.InsertBefore(text("• "), n.FirstChild)
		w.block(n, code)
	case atom.Pre:
		codeLines(n)
		w.block(n, code)
	default:
		if blockBreaks(n.Data) > 0 || n.DataAtom == atom.Tbody {
			w.block(n, code)
			return
		}
		w.children(n, code)
	}
}

// block goes through an element that stands on lines of its own.
func (w *lineWriter) block(n *html.Node, code bool) {
	rename(n, atom.Span)
	w.due(n, n.FirstChild)
	w.children(n, code)
	w.due(n.Parent, n.NextSibling)
}

func (w *lineWriter) due(parent, before *html.Node) { w.parent, w.before = parent, before }

// content writes the line break that is due.
func (w *lineWriter) content() {
	if w.begun && w.parent != nil {
		w.parent.InsertBefore(element(atom.Br), w.before)
	}
	w.begun, w.parent = true, nil
}

// codeLines replaces the content of a code block by inline code, one element for each line.
func codeLines(pre *html.Node) {
	var code strings.Builder
	for d := range pre.Descendants() {
		switch {
		case d.Type == html.TextNode:
			code.WriteString(d.Data)
		case d.DataAtom == atom.Br:
			code.WriteByte('\n')
		}
	}
	for pre.FirstChild != nil {
		pre.RemoveChild(pre.FirstChild)
	}
	for line := range strings.Lines(code.String()) {
		if line = strings.TrimRight(line, " \t\r\n"); line == "" {
			continue
		}
		written := element(atom.Code)
		written.AppendChild(text(line))
		pre.AppendChild(written)
		pre.AppendChild(element(atom.Br))
	}
}

func text(data string) *html.Node { return &html.Node{Type: html.TextNode, Data: data} }
