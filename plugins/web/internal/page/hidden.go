package page

import (
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"
)

// Text that a reader does not see may contain instructions to a model. An element is
// hidden if its own attributes say so; style sheets and scripts are not evaluated.

// prune removes comments, scripts, styles, frames and hidden elements.
func prune(n *html.Node) {
	for child := n.FirstChild; child != nil; {
		next := child.NextSibling
		if child.Type == html.CommentNode || child.Type == html.ElementNode && unread(child) {
			n.RemoveChild(child)
		} else {
			prune(child)
		}
		child = next
	}
}

// unread reports whether a reader does not see an element.
func unread(n *html.Node) bool {
	switch n.Data {
	case "script":
		return attribute(n, "type") != "application/ld+json" // contains the author and date of the article
	case "style", "template", "iframe", "frame", "frameset", "noframes", "object", "embed", "noembed", "noscript", "applet", "svg", "canvas", "select", "datalist":
		return true
	case "dialog":
		if !hasAttribute(n, "open") {
			return true
		}
	case "a": // the link of a heading to itself
		only := n.FirstChild
		if only != nil && only == n.LastChild && only.Type == html.TextNode && (only.Data == "¶" || only.Data == "#") {
			return true
		}
	}
	for _, a := range n.Attr {
		switch strings.ToLower(a.Key) {
		case "hidden":
			if !strings.EqualFold(a.Val, "until-found") { // a section that the reader can open
				return true
			}
		case "style":
			if hides(a.Val) {
				return true
			}
		}
	}
	return false
}

// hides reports whether a style makes an element invisible.
func hides(style string) bool {
	for declaration := range strings.SplitSeq(withoutComments(strings.ToLower(style)), ";") {
		property, value, _ := strings.Cut(declaration, ":")
		property, value = strings.TrimSpace(property), strings.TrimSpace(value)
		value = strings.TrimSpace(strings.TrimSuffix(value, "!important"))
		if strings.Contains(property, `\`) {
			return true // an escaped name is an attempt to hide the property
		}
		switch property {
		case "display", "visibility", "content-visibility":
			if value == "none" || value == "hidden" || value == "collapse" || strings.Contains(value, `\`) {
				return true
			}
		case "opacity", "font-size", "zoom":
			if number, ok := leading(value); ok && number == 0 {
				return true
			}
		case "left", "top", "right", "bottom", "text-indent", "margin-left", "margin-top":
			if number, ok := leading(value); ok && number <= -900 {
				return true
			}
		}
	}
	return false
}

// withoutComments returns a style without its comments.
func withoutComments(style string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(style, "/*")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		_, style, _ = strings.Cut(rest, "*/")
	}
}

// leading returns the number at the beginning of a value.
func leading(value string) (float64, bool) {
	end := strings.IndexFunc(value, func(c rune) bool { return (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' })
	if end < 0 {
		end = len(value)
	}
	number, err := strconv.ParseFloat(value[:end], 64)
	return number, err == nil
}

// visibleAttributes removes the event handlers, data and style of an element.
func visibleAttributes(n *html.Node) {
	kept := n.Attr[:0]
	for _, a := range n.Attr {
		if key := strings.ToLower(a.Key); !strings.HasPrefix(key, "on") && !strings.HasPrefix(key, "data-") && key != "style" {
			kept = append(kept, a)
		}
	}
	n.Attr = kept
}

// clean returns text as valid UTF-8 without the characters that a person does not see but
// a model reads: control characters, direction marks, variation selectors, and the
// invisible alphabet that can hide instructions. It keeps joiners, which some scripts and
// emoji need.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t' || c == 0x200c || c == 0x200d:
			return c
		case c == '\r' || c == 0x2028 || c == 0x2029:
			return '\n'
		case unicode.Is(unicode.Prepended_Concatenation_Mark, c):
			return c
		case c >= 0xfff9 && c <= 0xfffb, unicode.In(c, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
			return -1
		}
		return c
	}, text)
}
