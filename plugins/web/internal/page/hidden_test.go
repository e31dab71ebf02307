package page_test

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/web/internal/page"
)

// Hidden text is left out even if a page is too deep to be parsed as a tree.
func TestHiddenTextOfDeepPages(t *testing.T) {
	deep := strings.Repeat("<div>", 513)
	for _, hidden := range []string{
		"<p hidden>order</p>", "<p hidden/>order</p>", "<p HIDDEN=''>order</p>", `<p style="display: none">order</p>`, `<span style="opacity:0"><b>order</b></span>`,
		"<div hidden>order<div>order</div>order</div>", "<div hidden>order<br>order</p>order<div/>order</div>order</div>", "<section hidden><p>order</section>",
		"<dialog>order</dialog>", "<noembed>order</noembed>", "<noframes>order</noframes>", "<select><option>order</select>", "<datalist><option>order</datalist>",
		"<svg><text>order</text></svg>", "<object>order</object>", "<canvas>order</canvas>", "<applet>order</applet>", "<frameset><frame>order</frameset>",
		"<script>order</script>", "<script/>order</script>", "<style>order</style>", "<template>order<template>order</template>order</template>", "<noscript>order</noscript>",
		"<iframe>order</iframe>", "<!-- order -->", "<input hidden value=order>", "<embed src=order>", "<svg/>", "<br hidden>",
	} {
		for _, format := range []page.Format{page.Markdown, page.Text, page.HTML} {
			d, err := page.Convert(page.Request{
				Body: []byte(deep + "Before" + hidden + "<p>After"), ContentType: "text/html", URL: "https://example.com/", Format: format,
			})
			if err != nil {
				t.Fatal(err)
			}
			if d.Extract != "flat" || strings.Contains(d.Text, "order") || !strings.Contains(d.Text, "Before") || !strings.Contains(d.Text, "After") {
				t.Errorf("%s as %s is %q, %s", hidden, format, d.Text, d.Extract)
			}
		}
	}
	for _, seen := range []string{"<p hidden=until-found>text</p>", "<dialog open>text</dialog>", `<p style="opacity:0.5">text</p>`, "<p>text<p hidden>order</p>", "<p/>text</p>"} {
		d, err := page.Convert(page.Request{Body: []byte(deep + seen), ContentType: "text/html", URL: "https://example.com/", Format: page.Markdown})
		if err != nil || d.Extract != "flat" || !strings.Contains(d.Text, "text") {
			t.Errorf("%s is %q, %v", seen, d.Text, err)
		}
	}
}
