package page

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// languageAttribute is where [markLanguages] notes the language of a code block. Readability
// removes classes, but keeps it.
const languageAttribute = "data-language"

// maxClass bounds the bytes of a class attribute that are examined for a language.
const maxClass = 300

// languageName matches what can stand behind the fence of a code block.
var languageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+#._-]{0,29}$`)

// markCode prepares code blocks, before classes and tables are lost: it notes the language
// of each, and removes the line numbers beside it.
func markCode(root *html.Node) {
	for n := range root.Descendants() {
		switch {
		case n.DataAtom == atom.Pre:
			setAttribute(n, languageAttribute, languageOfBlock(n))
		case n.DataAtom == atom.Tr && n.Parent.Parent != nil:
			withoutGutter(n)
		}
	}
}

// withoutGutter removes the line numbers from a table of one row, and leaves its code as
// blocks.
func withoutGutter(tr *html.Node) {
	var cells []*html.Node
	for n := range tr.ChildNodes() {
		if n.Type == html.ElementNode {
			cells = append(cells, n)
		}
	}
	if len(cells) == 2 && isGutter(cells[0]) {
		tr.RemoveChild(cells[0])
		asBlocks(tr.Parent.Parent)
	}
}

// hoistCode replaces each element that only wraps a code block by the block: Readability
// drops short code in a div.
func hoistCode(root *html.Node) {
	var blocks []*html.Node
	for n := range root.Descendants() {
		if n.DataAtom == atom.Pre {
			blocks = append(blocks, n)
		}
	}
	for _, pre := range blocks {
		wrapper := pre
		for parent := pre.Parent; parent != nil && (parent.DataAtom == atom.Div || parent.DataAtom == atom.Figure) && alone(wrapper); parent = parent.Parent {
			wrapper = parent
		}
		if wrapper != pre {
			pre.Parent.RemoveChild(pre)
			wrapper.Parent.InsertBefore(pre, wrapper)
			wrapper.Parent.RemoveChild(wrapper)
		}
	}
}

// alone reports whether a node has no siblings but white space.
func alone(n *html.Node) bool {
	for sibling := range n.Parent.ChildNodes() {
		if sibling != n && (sibling.Type != html.TextNode || strings.TrimSpace(sibling.Data) != "") {
			return false
		}
	}
	return true
}

// languageOfBlock returns the language of a code block, which highlighters write in many
// ways: on the block, on the code in it, or on an element around it.
func languageOfBlock(pre *html.Node) string {
	places := []*html.Node{pre}
	for child := range pre.ChildNodes() {
		if child.DataAtom == atom.Code {
			places = append(places, child)
			break
		}
	}
	for parent := pre.Parent; parent != nil && len(places) < 4 && (parent.DataAtom == atom.Div || parent.DataAtom == atom.Figure); parent = parent.Parent {
		places = append(places, parent)
	}
	for _, place := range places {
		if name := languageOf(place); name != "" {
			return name
		}
	}
	return ""
}

// isGutter reports whether a cell contains the line numbers of the code beside it.
func isGutter(cell *html.Node) bool {
	class := attribute(cell, "class")
	for token := range strings.FieldsSeq(class[:min(len(class), maxClass)]) {
		switch token {
		case "linenos", "lineno", "gutter", "line-numbers", "rouge-gutter":
			return strings.Trim(textOf([]*html.Node{cell}), "0123456789 \t\n") == ""
		}
	}
	return false
}

// languageOf returns the programming language that an element names; "" if it names none.
func languageOf(n *html.Node) string {
	candidates := []string{attribute(n, languageAttribute), attribute(n, "data-lang")}
	class := attribute(n, "class")
	before := ""
	for token := range strings.FieldsSeq(class[:min(len(class), maxClass)]) {
		for _, prefix := range []string{"language-", "lang-", "highlight-source-", "highlight-", "brush:"} {
			if name, ok := strings.CutPrefix(token, prefix); ok {
				candidates = append(candidates, strings.TrimSuffix(name, ";"))
				break
			}
		}
		if before == "sourceCode" || before == "brush:" { // of Pandoc and SyntaxHighlighter
			candidates = append(candidates, strings.TrimSuffix(token, ";"))
		}
		before = token
	}
	for _, name := range candidates {
		switch strings.ToLower(name) {
		case "text", "txt", "plain", "plaintext", "none", "default", "nohighlight", "wrapper":
			return ""
		}
		if languageName.MatchString(name) {
			return strings.ToLower(name)
		}
	}
	return ""
}

// showLanguages writes the noted language of each code block as the only class, where the
// Markdown library looks for it.
func showLanguages(n *html.Node) {
	if n.Type == html.ElementNode && n.DataAtom == atom.Pre {
		class := ""
		if name := attribute(n, languageAttribute); name != "" {
			class = "language-" + name
		}
		setAttribute(n, "class", class)
		for d := range n.Descendants() {
			setAttribute(d, "class", "")
		}
		return
	}
	for child := range n.ChildNodes() {
		showLanguages(child)
	}
}

// setAttribute sets an attribute of an element, or removes it if the value is "".
func setAttribute(n *html.Node, name, value string) {
	kept := n.Attr[:0]
	for _, a := range n.Attr {
		if a.Key != name {
			kept = append(kept, a)
		}
	}
	if n.Attr = kept; value != "" {
		n.Attr = append(n.Attr, html.Attribute{Key: name, Val: value})
	}
}
