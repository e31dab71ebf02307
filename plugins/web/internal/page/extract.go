package page

import (
	"net/url"
	"strings"
	"time"

	"github.com/andybalholm/cascadia"
	"github.com/go-shiori/go-readability"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/toolhost/toolhost/sdk/tool"
)

// minArticle is the minimum length of an article in characters. A page with less, such as
// a list or a form, is returned in full.
const minArticle = 200

// maxSelector bounds the bytes of a selector.
const maxSelector = 500

// extract is the part of a page to convert.
type extract struct {
	how                      string // see [Document.Extract]
	nodes                    []*html.Node
	title, byline, published string
}

// extractor selects a part of a page. It may change the page.
type extractor interface {
	extract(root *html.Node, base *url.URL) (extract, error)
}

// extractorFor returns the extractor for a request.
func extractorFor(r Request) extractor {
	switch {
	case r.Selector != "":
		return selected{r.Selector}
	case r.Whole:
		return whole{}
	}
	return article{}
}

// whole selects the body of a page.
type whole struct{}

func (whole) extract(root *html.Node, _ *url.URL) (extract, error) {
	found := extract{how: "full", nodes: []*html.Node{root}}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.DataAtom == atom.Body {
			found.nodes = []*html.Node{n}
			break
		}
	}
	return found, nil
}

// selected selects the elements that match a CSS selector, except those inside another
// matching element.
type selected struct{ selector string }

func (s selected) extract(root *html.Node, _ *url.URL) (extract, error) {
	if len(s.selector) > maxSelector {
		return extract{}, tool.Errorf(tool.InvalidArgument, "selector has %d characters, expected at most %d", len(s.selector), maxSelector)
	}
	group, err := cascadia.ParseGroup(s.selector)
	if err != nil {
		return extract{}, tool.Errorf(tool.InvalidArgument, "selector %q is not a valid CSS selector: %v", s.selector, err).
			WithHint("use a selector such as main, #content or table.results")
	}
	found := extract{how: "selector"}
	taken := make(map[*html.Node]bool)
	for _, n := range cascadia.QueryAll(root, group) {
		inside := false
		for parent := n.Parent; parent != nil && !inside; parent = parent.Parent {
			inside = taken[parent]
		}
		if taken[n] = true; !inside {
			found.nodes = append(found.nodes, n)
		}
	}
	if len(found.nodes) == 0 {
		return extract{}, tool.Errorf(tool.NotFound, "no element of the page matches the selector %q", s.selector).
			WithHint("fetch the page with extract full and format html to see its elements")
	}
	return found, nil
}

// article selects the main text of a page, without navigation and the like. If there is
// none, it selects the body.
type article struct{}

func (article) extract(root *html.Node, base *url.URL) (extract, error) {
	found, ok := readable(root, base)
	if !ok {
		return whole{}.extract(root, base)
	}
	return found, nil
}

// readable finds the article with the algorithm of Mozilla's Readability.
func readable(root *html.Node, base *url.URL) (found extract, ok bool) {
	defer func() {
		if recover() != nil { // the library panics on some pages
			found, ok = extract{}, false
		}
	}()
	hoistCode(root)
	parser := readability.NewParser()
	parsed, err := parser.ParseDocument(root, base)
	if err != nil || parsed.Node == nil || parsed.Length < minArticle {
		return extract{}, false
	}
	found = extract{how: "article", nodes: []*html.Node{parsed.Node}, title: parsed.Title, byline: parsed.Byline}
	if parsed.PublishedTime != nil {
		found.published = parsed.PublishedTime.UTC().Format(time.RFC3339)
	}
	return found, true
}

// heading reports whether the nodes begin with the title or a main heading.
func (e extract) heading() bool {
	for _, n := range e.nodes {
		for d := range n.Descendants() {
			switch {
			case d.Type == html.TextNode && strings.TrimSpace(d.Data) != "":
				return strings.Contains(line(e.title), line(d.Data))
			case d.Type == html.ElementNode && d.DataAtom == atom.H1:
				return true
			}
		}
	}
	return false
}
