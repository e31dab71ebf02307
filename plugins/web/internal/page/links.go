package page

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Link is a link of a page.
type Link struct {
	URL  string `json:"url" jsonschema:"the absolute URL"`
	Text string `json:"text,omitempty" jsonschema:"the text of the link"`
}

// LinkRequest selects links of a page.
type LinkRequest struct {
	// Match selects links whose URL or text contains it, ignoring case.
	Match string `json:"match"`
	// SameHost selects links to the host and port of the page.
	SameHost bool `json:"same_host"`
	// Offset is the number of these links to skip. Limit is the maximum number of links to
	// return, and Bytes the maximum size of their URLs and texts.
	Offset int `json:"offset"`
	Limit  int `json:"limit"`
	Bytes  int `json:"bytes"`
}

// wants reports whether the request selects a link.
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

// port returns the port of a URL.
func port(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// links returns the selected links of a page, and the total number of them.
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

// linksOf returns the links of a page, each URL once, in the order of the page. A document
// that is not HTML, or that cannot be parsed, has none.
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

// alternative returns the alternative text of an image in the element, or of the element.
func alternative(n *html.Node) string {
	for d := range n.Descendants() {
		if text := attribute(d, "alt"); text != "" {
			return text
		}
	}
	return attribute(n, "alt")
}
