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

// minArticle is how many characters an article has at least. If less is found, the
// page has none, as a list or a form, and all of it is taken.
const minArticle = 200

// maxSelector bounds the text of a selector.
const maxSelector = 500

// extract is what was taken of a page.
type extract struct {
	how                      string // see [Document.Extract]
	nodes                    []*html.Node
	title, byline, published string
}

// extractor takes out of a page what its reader wants. It may change the page.
type extractor interface {
	extract(root *html.Node, base *url.URL) (extract, error)
}

// extractorFor returns what does as a request says.
func extractorFor(r Request) extractor {
	switch {
	case r.Selector != "":
		return selected{r.Selector}
	case r.Whole:
		return whole{}
	}
	return article{}
}

// whole takes all of a page that people read.
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

// selected takes the elements that a CSS selector names, without those inside
// another one of them.
type selected struct{ selector string }

func (s selected) extract(root *html.Node, _ *url.URL) (extract, error) {
	if len(s.selector) > maxSelector {
		return extract{}, tool.Errorf(tool.InvalidArgument, "selector has %d characters, at most %d are possible", len(s.selector), maxSelector)
	}
	group, err := cascadia.ParseGroup(s.selector)
	if err != nil {
		return extract{}, tool.Errorf(tool.InvalidArgument, "selector %q is no CSS selector: %v", s.selector, err).
			WithHint("a selector looks like main, #content or table.results")
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
		return extract{}, tool.Errorf(tool.NotFound, "no element of the page is named by the selector %q", s.selector).
			WithHint("fetch the page without selector, or with format html, to see its elements")
	}
	return found, nil
}

// article takes the text that the page is about, without what is around it on all
// pages of a site. If there is none it takes all.
type article struct{}

func (article) extract(root *html.Node, base *url.URL) (extract, error) {
	found, ok := readable(root, base)
	if !ok {
		return whole{}.extract(root, base)
	}
	return found, nil
}

// readable finds the article by the rules of Mozilla's Readability.
func readable(root *html.Node, base *url.URL) (found extract, ok bool) {
	defer func() {
		if recover() != nil { // a page that the library was not made for
			found, ok = extract{}, false
		}
	}()
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

// heading reports whether the nodes begin with the title, so that it need not be
// said twice.
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
