package page

import (
	"strings"

	"golang.org/x/net/html"
)

// textWriter writes the text of elements, one block on each line.
type textWriter struct {
	out    strings.Builder
	space  bool // a space stands between what was written and what comes
	breaks int  // line breaks that do, 2 at most
	pre    int  // how many elements are open in which spaces count
	unread int  // how many are that nobody reads
	fresh  bool // the mark of an entry of a list was written, and nothing of it
}

// textOf returns the text of nodes and of what is in them.
func textOf(nodes []*html.Node) string {
	var w textWriter
	for _, n := range nodes {
		w.node(n)
		w.newLine(2)
	}
	return w.String()
}

// textOfTokens returns the text of a page of which no tree was made, without what
// nobody reads. An element like that which is not closed goes on to the end.
func textOfTokens(page string) string {
	var w textWriter
	left, depth := "", 0 // the element that is left out, and how many of its name are open
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

// opens reports whether a tag begins an element that goes on to another tag. Of those
// of HTML that can be empty a slash says nothing.
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

// blockBreaks is how many line breaks stand around an element; 0 within a line.
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

// newLine ends the line, unless it has the mark of an entry only.
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

// flush writes what stands between what was written and what comes.
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
