package page

import (
	"bytes"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/toolhost/toolhost/sdk/tool"
)

// readHTML converts a page. If it cannot be parsed into a tree (the parser refuses more
// than 512 nested elements), or a library fails, the result is plain text.
func readHTML(d Document, text string, base *url.URL, r Request) (Document, error) {
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		if r.Selector != "" {
			return d, tool.Errorf(tool.Failed, "the page cannot be parsed into elements, which selector needs").
				WithHint("omit selector").WithCause(err)
		}
		return flat(d, text), nil
	}
	d.Title = titleOf(root)
	prune(root)
	absolutize(root, base)
	markCode(root)
	found, err := extractorFor(r).extract(root, base)
	if err != nil {
		return d, err
	}
	d.Extract = found.how
	d.Title, d.Byline, d.Published = line(first(found.title, d.Title)), line(found.byline), found.published
	written, err := write(r.Format, found)
	if err != nil {
		return flat(d, text), nil //nolint:nilerr // plain text is the fallback
	}
	d.Text = clean(written)
	return d, nil
}

// flat converts a page to plain text.
func flat(d Document, text string) Document {
	d.Extract = "flat"
	d.Text = clean(textOfTokens(text))
	return d
}

// write returns the nodes in a format.
func write(format Format, found extract) (string, error) {
	switch format {
	case HTML:
		var out bytes.Buffer
		for _, n := range found.nodes {
			visibleAttributes(n)
			for d := range n.Descendants() {
				visibleAttributes(d)
			}
			if err := html.Render(&out, n); err != nil {
				return "", err
			}
			out.WriteByte('\n')
		}
		return out.String(), nil
	case Text:
		return textOf(found.nodes), nil
	case Markdown, Raw: // the caller handles raw
	}
	return markdown(found)
}

// absolutize makes the URLs of links and images absolute. It removes those that a reader
// could not open.
func absolutize(root *html.Node, base *url.URL) {
	base = baseOf(root, base)
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		kept := n.Attr[:0]
		for _, a := range n.Attr {
			switch a.Key {
			case "href", "src", "cite", "poster":
				address, ok := absolute(base, a.Val)
				if !ok {
					continue
				}
				a.Val = address
			case "srcset", "ping", "background":
				continue
			}
			kept = append(kept, a)
		}
		n.Attr = kept
	}
}

// baseOf returns the base of the relative URLs in a page.
func baseOf(root *html.Node, base *url.URL) *url.URL {
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.DataAtom == atom.Base {
			if declared, err := base.Parse(strings.TrimSpace(attribute(n, "href"))); err == nil && (declared.Scheme == "http" || declared.Scheme == "https") {
				return declared
			}
			return base
		}
	}
	return base
}

// absolute returns an absolute URL, and reports whether a reader could open it.
func absolute(base *url.URL, text string) (string, bool) {
	u, err := base.Parse(strings.Map(func(c rune) rune {
		if c == '\n' || c == '\r' || c == '\t' {
			return -1
		}
		return c
	}, strings.TrimSpace(text)))
	if err != nil {
		return "", false
	}
	switch u.Scheme {
	case "http", "https", "mailto", "tel", "ftp":
		return u.String(), true
	}
	return "", false
}

// titleOf returns the title of a page; "" if it has none.
func titleOf(root *html.Node) string {
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.DataAtom == atom.Title && n.Namespace == "" {
			return textOf([]*html.Node{n})
		}
	}
	return ""
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func hasAttribute(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

// line returns text on one line of at most 300 characters.
func line(text string) string {
	text = strings.Join(strings.Fields(clean(text)), " ")
	if runes := []rune(text); len(runes) > 300 {
		return string(runes[:300]) + "..."
	}
	return text
}

func first(texts ...string) string {
	for _, text := range texts {
		if strings.TrimSpace(text) != "" {
			return text
		}
	}
	return ""
}
