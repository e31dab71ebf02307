package page

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Link is where a page leads to.
type Link struct {
	URL  string `json:"url" jsonschema:"the whole address"`
	Text string `json:"text,omitempty" jsonschema:"what the page calls it"`
}

// LinkRequest says which links of a page are wanted.
type LinkRequest struct {
	// Match is in the address or the text of each, in any case; "" is in all.
	Match string `json:"match"`
	// SameHost takes only those to the host of the page.
	SameHost bool `json:"same_host"`
	// Offset is how many of these are left out at the beginning, Limit how many
	// there are at most, and Bytes how many bytes their addresses and texts have.
	Offset int `json:"offset"`
	Limit  int `json:"limit"`
	Bytes  int `json:"bytes"`
}

// wants reports whether a link is one of those that are wanted.
func (l *LinkRequest) wants(link Link, page *url.URL) bool {
	if l.Match != "" && !strings.Contains(strings.ToLower(link.URL+"\n"+link.Text), strings.ToLower(l.Match)) {
		return false
	}
	if !l.SameHost {
		return true
	}
	to, err := url.Parse(link.URL)
	return err == nil && strings.EqualFold(to.Hostname(), page.Hostname()) && port(to) == port(page)
}

// port is the one that an address leads to.
func port(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// links returns the links of a page that are wanted, and how many would be without
// a bound.
func (r Request) links() (Document, error) {
	kind, mediaType := kindOf(r.Body, r.ContentType)
	d := Document{Kind: kind, MediaType: mediaType}
	base, err := url.Parse(r.URL)
	if err != nil {
		return d, fmt.Errorf("read the document's address: %w", err)
	}
	size := 0
	for _, link := range linksOf(r, kind, base) {
		if !r.Links.wants(link, base) {
			continue
		}
		d.Total++
		if d.Total <= r.Links.Offset || len(d.Links) == r.Links.Limit || size > r.Links.Bytes {
			continue
		}
		if size += len(link.URL) + len(link.Text); size <= r.Links.Bytes {
			d.Links = append(d.Links, link)
		}
	}
	return d, nil
}

// linksOf returns the links of a page, each address once, in the order of the page.
// A document that is no page, or of which no tree can be made, has none.
func linksOf(r Request, kind Kind, base *url.URL) []Link {
	if kind != KindHTML {
		return nil
	}
	text, _ := decode(r.Body, r.ContentType, true)
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return nil
	}
	prune(root)
	absolutize(root, base)
	var links []Link
	seen := make(map[string]int)
	for n := range root.Descendants() {
		if n.Type != html.ElementNode || n.DataAtom != atom.A && n.DataAtom != atom.Area {
			continue
		}
		address := attribute(n, "href")
		if !strings.HasPrefix(address, "http://") && !strings.HasPrefix(address, "https://") {
			continue
		}
		address, _, _ = strings.Cut(address, "#")
		name := line(first(textOf([]*html.Node{n}), attribute(n, "title"), attribute(n, "aria-label"), alternative(n)))
		if i, ok := seen[address]; ok {
			if links[i].Text == "" {
				links[i].Text = name
			}
			continue
		}
		seen[address] = len(links)
		links = append(links, Link{URL: address, Text: name})
	}
	return links
}

// alternative is the text in place of a picture that is the element, or in it.
func alternative(n *html.Node) string {
	for d := range n.Descendants() {
		if text := attribute(d, "alt"); text != "" {
			return text
		}
	}
	return attribute(n, "alt")
}
