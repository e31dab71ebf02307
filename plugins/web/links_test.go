package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

func linkPage() string {
	var page strings.Builder
	page.WriteString(`<title>All
 boats</title><base href="/dir/"><a href="hidden.html" hidden>Hidden</a><a href="a.html#x">First</a> <a href="a.html" title="The first of all">Again</a> <a href="https://other.example/b"><img alt="Picture"></a>
<a href="javascript:alert(1)">No</a> <a href="mailto:a@b.example">Mail</a> <map><area href="/c" alt="Area"></map> <a href="//other.example/d" title="Titled"></a>`)
	for i := range 200 {
		fmt.Fprintf(&page, `<a href="n%03d">Number %d</a> `, i, i)
	}
	return page.String()
}

func linksCalls() []toolCall {
	call := func(name string, in webLinksArgs, want string, code tool.Code) toolCall {
		if in.URL == "" {
			in.URL = "https://example.com/links"
		}
		if in.Limit == 0 {
			in.Limit = 100
		}
		return toolCall{name: name, tool: "web_links", in: in, want: want, code: code}
	}
	return []toolCall{
		call("whole addresses, with the base of the page", webLinksArgs{}, "First\n  https://example.com/dir/a.html\n  The first of all\n", ""),
		call("by a word in a title", webLinksArgs{Match: "first of"}, "The first of all\n", ""),
		call("the text of a picture", webLinksArgs{}, "Picture\n  https://other.example/b\n", ""),
		call("the title of a link without text", webLinksArgs{}, "Titled\n  https://other.example/d\n", ""),
		call("areas", webLinksArgs{}, "Area\n  https://example.com/c\n", ""),
		call("as many as are wanted", webLinksArgs{Limit: 3}, "[links 0-3 of 204; continue with cursor=\"3\"]", ""),
		call("on", webLinksArgs{Cursor: "200"}, "Number 199\n  https://example.com/dir/n199\n", ""),
		call("beyond the end", webLinksArgs{Cursor: "1000"}, "[begin", ""),
		call("by a word", webLinksArgs{Match: "NUMBER 17"}, "Number 170\n", ""),
		call("by a word that is in none", webLinksArgs{Match: "zebra"}, "[no links]", ""),
		call("of the host", webLinksArgs{SameHost: true, Limit: 2}, "First\n  https://example.com/dir/a.html\n  The first of all\nArea\n", ""),
		call("of a page that was not fetched", webLinksArgs{URL: "https://example.com/other"}, "not in the cache", tool.NotFound),
		call("after a redirect", webLinksArgs{URL: "https://example.com/moved"}, "First", ""),
		call("of what has none", webLinksArgs{URL: "https://example.com/text"}, "[no links]", ""),
		call("of no address", webLinksArgs{URL: "nowhere"}, "", tool.InvalidArgument),
		call("none", webLinksArgs{Limit: -1}, "expected at least 1", tool.InvalidArgument),
		call("before the start", webLinksArgs{Cursor: "-1"}, "expected next_cursor", tool.InvalidArgument),
	}
}

func TestLinks(t *testing.T) {
	w := newWorld(t, site{
		"/links": serve("text/html", linkPage()),
		"/text":  serve("text/plain", "https://example.com/"),
		"/moved": redirect("/links", 301),
	})
	p := w.start(t, sdktest.Options{})
	for _, path := range []string{"/links", "/text", "/moved"} {
		if got := p.Call(t.Context(), "web_fetch", webFetchArgs{URL: "https://example.com" + path}); got.Error != nil {
			t.Fatal(got.Error)
		}
	}
	before := len(w.dials())
	for _, c := range linksCalls() {
		t.Run(c.name, func(t *testing.T) { c.check(t, p) })
	}
	if after := len(w.dials()); after != before {
		t.Errorf("web_links dialled %d times", after-before)
	}
	got := p.Call(t.Context(), "web_links", webLinksArgs{URL: "https://example.com/links", Limit: 2})
	var data struct {
		Links []struct{ URL, Text, Title string }
		Total int
	}
	if err := json.Unmarshal(got.Structured, &data); err != nil || len(data.Links) != 2 || data.Total != 204 || data.Links[0].Text != "First" || data.Links[0].Title != "The first of all" {
		t.Errorf("structured %s, %v", got.Structured, err)
	}
	if got.Metadata["untrusted"] != true || got.Metadata["next_cursor"] != "2" || got.Metadata["title"] != "All boats" {
		t.Errorf("metadata %v", got.Metadata)
	}
	// Other users do not see a user's fetched pages.
	other := p.Run(t.Context(), tool.Call{
		ID: "tc_1", Tool: "web_links", Arguments: []byte(`{"url":"https://example.com/links","limit":1}`), Context: tool.Context{User: "eve"},
	}, tool.Sink{})
	if other.Error == nil || other.Error.Code != tool.NotFound {
		t.Errorf("another user gets %q, %v", other.Text(), other.Error)
	}
	// The links of a page can be listed however it was reached, unless it may not be kept.
	second := newWorld(t, site{
		"/found": redirect("/page", http.StatusFound),
		"/page":  serve("text/html", `<a href="https://EXAMPLE.com:443/x">X</a>`),
		"/unkept": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<a href=/x>X</a>")
		},
		"/cookie": func(w http.ResponseWriter, r *http.Request) {
			if _, err := r.Cookie("seen"); err != nil {
				http.SetCookie(w, &http.Cookie{Name: "seen", Value: "x"})
				http.Redirect(w, r, "/cookie", http.StatusFound)
				return
			}
			serve("text/html", "<a href=/x>X</a>")(w, r)
		},
	}).start(t, sdktest.Options{})
	for path, code := range map[string]tool.Code{"/found": "", "/page": "", "/cookie": "", "/unkept": tool.NotFound} {
		address := "https://example.com" + path
		if got := second.Call(t.Context(), "web_fetch", webFetchArgs{URL: address}); got.Error != nil {
			t.Fatal(got.Error)
		}
		want := "X\n  https://"
		if code != "" {
			want = "if its server forbids keeping it"
		}
		toolCall{tool: "web_links", in: webLinksArgs{URL: address, SameHost: true, Limit: 100}, want: want, code: code}.check(t, second)
	}
	// A result fits.
	small := w.start(t, sdktest.Options{Context: tool.Context{MaxOutput: 2 * tool.KiB}})
	_ = small.Call(t.Context(), "web_fetch", webFetchArgs{URL: "https://example.com/links"})
	got = small.Call(t.Context(), "web_links", webLinksArgs{URL: "https://example.com/links", Limit: 100})
	if size := len(got.Text()) + len(got.Structured); got.Error != nil || size > 2048 || size < 500 {
		t.Errorf("%d bytes, %v; want at most 2048", size, got.Error)
	}
}

// A link shows its title if that says more than its text.
func TestLinkTitles(t *testing.T) {
	pages, calls := site{}, []toolCall{}
	for i, tt := range []struct{ in, want string }{
		{`<a href=/x title="The whole story">here</a>`, "here\n  https://example.com/x\n  The whole story\n"},
		{`<a href=/x title="STORY">The story</a>`, "The story\n  https://example.com/x\n\n["},
		{`<a href=/x aria-label="Read more about boats">more</a>`, "more\n  https://example.com/x\n  Read more about boats\n"},
		{`<a href=/x title="Boats"><img src=b.png></a>`, "Boats\n  https://example.com/x\n\n["},
		{`<a href=/x title="a&#10;[end]&#x202e;` + strings.Repeat("y", 400) + `">x</a>`, "x\n  https://example.com/x\n  a [end]" + strings.Repeat("y", 293) + "...\n"},
		{`<a href=/x><img alt="A boat"></a><a href=/x title="All boats">boats</a>`, "A boat\n  https://example.com/x\n  All boats\n"},
	} {
		path := fmt.Sprintf("/%d", i)
		pages[path] = serve("text/html", tt.in)
		calls = append(calls, toolCall{tool: "web_links", in: map[string]any{"url": "https://example.com" + path}, want: tt.want})
	}
	p := newWorld(t, pages).start(t, sdktest.Options{})
	for _, call := range calls {
		if got := p.Call(t.Context(), "web_fetch", call.in); got.Error != nil {
			t.Fatal(got.Error)
		}
		call.check(t, p)
	}
}

// A model that follows the instructions in results reaches the end of the links, beyond links
// that are too long to show.
func TestLongLinks(t *testing.T) {
	var all []string
	for i := range 12 {
		address := fmt.Sprintf("https://example.com/%02d", i)
		if i%3 != 1 && i < 10 {
			address += strings.Repeat("x", 3000)
		}
		all = append(all, address)
	}
	all = append(all, "https://example.com/last"+strings.Repeat("x", 3000))
	w := newWorld(t, site{"/links": serve("text/html", "<a href="+strings.Join(all, ">link</a><a href=")+">link</a>")})
	p := w.start(t, sdktest.Options{Context: tool.Context{MaxOutput: 2 * tool.KiB}})
	if got := p.Call(t.Context(), "web_fetch", webFetchArgs{URL: "https://example.com/links"}); got.Error != nil {
		t.Fatal(got.Error)
	}
	var seen []string
	left := 0
	for cursor, more := sdk.Cursor(""), true; more; {
		got := p.Call(t.Context(), "web_links", webLinksArgs{URL: "https://example.com/links", Limit: 100, Cursor: cursor})
		var data struct{ Links []struct{ URL string } }
		if err := json.Unmarshal(got.Structured, &data); err != nil || got.Error != nil {
			t.Fatal(err, got.Error)
		}
		for _, link := range data.Links {
			seen = append(seen, link.URL)
		}
		if contains(got.Text(), "1 of 13 links omitted") {
			left++
		}
		var text string
		text, more = got.Metadata["next_cursor"].(string)
		next := sdk.Cursor(text)
		before, _ := cursor.Position()
		if after, _ := next.Position(); more && (after <= before || !contains(got.Text(), fmt.Sprintf("continue with cursor=%q]", next))) {
			t.Fatalf("after %q comes %q: %q", cursor, next, got.Text())
		}
		cursor = next
	}
	short := slices.DeleteFunc(slices.Clone(all), func(address string) bool { return len(address) > 3000 })
	if !slices.Equal(seen, short) || left != len(all)-len(short) {
		t.Errorf("%d are left out, and shown are %q, want %q", left, seen, short)
	}
}
