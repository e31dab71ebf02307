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
	// Title is what the link says about itself besides its text.
	Title string `json:"title,omitempty" jsonschema:"the title of the link, if it is not its text"`
}

// LinkRequest selects links of a page.
type LinkRequest struct {
	// Match selects links whose URL, text or title contains it, ignoring case.
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
	if l.Match != "" && !strings.Contains(strings.ToLower(link.URL+"\n"+link.Text+"\n"+link.Title), strings.ToLower(l.Match)) {
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
	links, title := linksOf(r, kind, base)
	d.Title = title
	for _, link := range links {
		if !r.Links.wants(link, base) {
			continue
		}
		d.Total++
		if d.Total <= r.Links.Offset || len(d.Links) == r.Links.Limit || size > r.Links.Bytes {
			continue
		}
		if size += len(link.URL) + len(link.Text) + len(link.Title); size <= r.Links.Bytes {
			d.Links = append(d.Links, link)
		}
	}
	return d, nil
}

// linksOf returns the links of a page, each URL once, in the order of the page, and the
// title of the page. A document that is not HTML, or that cannot be parsed, has none.
func linksOf(r Request, kind Kind, base *url.URL) (links []Link, title string) {
	if kind != KindHTML {
		return nil, ""
	}
	text, _ := decode(r.Body, r.ContentType, true)
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return nil, ""
	}
	title = line(titleOf(root))
	prune(root)
	absolutize(root, base)
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
		link := linkOf(n, address)
		if i, ok := seen[address]; ok {
			if links[i].Text == "" {
				links[i] = link
			}
			links[i].Title = first(links[i].Title, link.Title)
			continue
		}
		seen[address] = len(links)
		links = append(links, link)
	}
	return links, title
}

// linkOf returns a link with its text and title. The title replaces a text that is missing,
// and is left out if it says no more than the text.
func linkOf(n *html.Node, address string) Link {
	link := Link{URL: address, Text: line(textOf([]*html.Node{n})), Title: line(first(attribute(n, "title"), attribute(n, "aria-label")))}
	if link.Text == "" {
		link.Text, link.Title = first(link.Title, line(alternative(n))), ""
	}
	if strings.Contains(strings.ToLower(link.Text), strings.ToLower(link.Title)) {
		link.Title = ""
	}
	return link
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
