package page

import (
	"strings"

	"golang.org/x/net/html"
)

// textWriter writes the text of elements, with a line for each block.
type textWriter struct {
	out    strings.Builder
	space  bool // a space is due before the next text
	breaks int  // line breaks that are due before the next text, at most 2
	pre    int  // the number of open elements that preserve white space
	unread int  // the number of open elements to leave out
	fresh  bool // the bullet of a list item was written, but none of its text
}

// textOf returns the text of nodes and their descendants.
func textOf(nodes []*html.Node) string {
	var w textWriter
	for _, n := range nodes {
		w.node(n)
		w.newLine(2)
	}
	return w.String()
}

// textOfTokens returns the text of a page that could not be parsed into a tree, without
// hidden elements. A hidden element that is not closed extends to the end of the page.
func textOfTokens(page string) string {
	var w textWriter
	left, depth := "", 0 // the hidden element, and the number of open elements with its name
	tokens := html.NewTokenizer(strings.NewReader(page))
	for tokens.Next() != html.ErrorToken {
		token := tokens.Token()
		starts := token.Type == html.StartTagToken || token.Type == html.SelfClosingTagToken
		switch {
		case starts && !opens(token):
			w.open(token.Data)
		case depth > 0 && token.Data == left && starts:
			depth++
		case depth > 0 && token.Data == left && token.Type == html.EndTagToken:
			depth--
		case depth > 0:
		case starts && unread(&html.Node{Type: html.ElementNode, Data: token.Data, Attr: token.Attr}):
			left, depth = token.Data, 1
		case starts:
			w.open(token.Data)
		case token.Type == html.EndTagToken:
			w.close(token.Data)
		case token.Type == html.TextToken:
			w.text(token.Data)
		}
	}
	return w.String()
}

// opens reports whether a start tag opens an element that needs an end tag. In HTML, a
// slash at the end of a tag has no meaning.
func opens(tag html.Token) bool {
	switch tag.Data {
	case "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen", "link", "meta", "param", "source", "track", "wbr":
		return false
	case "svg", "math":
		return tag.Type == html.StartTagToken
	}
	return true
}

// String returns the text.
func (w *textWriter) String() string { return strings.TrimSpace(w.out.String()) + "\n" }

func (w *textWriter) node(n *html.Node) {
	if n.Type == html.TextNode {
		w.text(n.Data)
		return
	}
	if n.Type == html.ElementNode {
		w.open(n.Data)
		defer w.close(n.Data)
	}
	for child := range n.ChildNodes() {
		w.node(child)
	}
}

func (w *textWriter) open(tag string) {
	switch tag {
	case "br":
		w.breaks = min(w.breaks+1, 2)
	case "li":
		w.newLine(1)
		w.flush()
		w.out.WriteString("- ")
		w.fresh = true
	case "td", "th":
		w.space = true
	case "pre", "textarea":
		w.newLine(2)
		w.pre++
	case "script", "style", "template", "noscript", "iframe":
		w.unread++
	default:
		w.newLine(blockBreaks(tag))
	}
}

func (w *textWriter) close(tag string) {
	switch tag {
	case "pre", "textarea":
		w.pre = max(0, w.pre-1)
		w.newLine(2)
	case "script", "style", "template", "noscript", "iframe":
		w.unread = max(0, w.unread-1)
	case "td", "th":
		w.space = true
	default:
		w.fresh = w.fresh && tag != "li"
		w.newLine(blockBreaks(tag))
	}
}

// blockBreaks returns the number of line breaks around an element; 0 for inline elements.
func blockBreaks(tag string) int {
	switch tag {
	case "p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "table", "ul", "ol", "dl", "figure", "hr":
		return 2
	case "div", "section", "article", "main", "header", "footer", "nav", "aside", "li", "tr", "dt", "dd",
		"figcaption", "form", "fieldset", "details", "summary", "address", "title", "body", "caption", "option":
		return 1
	}
	return 0
}

// newLine ends the line, unless it contains only a bullet.
func (w *textWriter) newLine(breaks int) {
	if !w.fresh {
		w.breaks = max(w.breaks, breaks)
	}
}

func (w *textWriter) text(text string) {
	if w.unread > 0 {
		return
	}
	if w.pre > 0 {
		w.flush()
		w.out.WriteString(text)
		return
	}
	for i, word := range strings.Fields(text) {
		if i > 0 || strings.ContainsAny(text[:1], " \t\r\n\f") {
			w.space = true
		}
		w.flush()
		w.fresh = false
		w.out.WriteString(word)
	}
	if text != "" && strings.ContainsAny(text[len(text)-1:], " \t\r\n\f") {
		w.space = true
	}
}

// flush writes the white space that is due.
func (w *textWriter) flush() {
	switch {
	case w.out.Len() == 0:
	case w.breaks > 0:
		w.out.WriteString("\n\n"[:w.breaks])
	case w.space:
		w.out.WriteByte(' ')
	}
	w.breaks, w.space = 0, false
}
