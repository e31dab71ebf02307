package page_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/web/internal/page"
)

// inMarkdown returns a page in Markdown.
func inMarkdown(t *testing.T, body string, whole bool) string {
	t.Helper()
	d, err := page.Convert(page.Request{Body: []byte(body), ContentType: "text/html", URL: "https://example.com/", Format: page.Markdown, Whole: whole})
	if err != nil {
		t.Fatal(err)
	}
	return d.Text
}

func TestTables(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"a wide head", `<tr><th colspan=2>A<th>B<tr><td>1<td>2<td>3`, "|A||B|\n|---|---|---|\n|1|2|3|\n"},
		{"two wide cells", `<tr><th>A<th>B<th>C<th>D<tr><td colspan=2>1<td colspan=2>3`, "|A|B|C|D|\n|---|---|---|---|\n|1||3||\n"},
		{"a tall cell", `<tr><th>A<th>B<th>C<tr><td>1<td rowspan=2>2<td>3<tr><td>4<td>6`, "|A|B|C|\n|---|---|---|\n|1|2|3|\n|4||6|\n"},
		{"a tall cell at the end", `<tr><th>A<th>B<tr><td>1<td rowspan=2>2<tr><td>3`, "|A|B|\n|---|---|\n|1|2|\n|3||\n"},
		{"a wide and tall cell", `<tr><th>A<th>B<th>C<tr><td colspan=2 rowspan=2>1<td>3<tr><td>6`, "|A|B|C|\n|---|---|---|\n|1||3|\n|||6|\n"},
		{"a cell taller than its group", `<tbody><tr><th>A<th>B<tr><td rowspan=9>1<td>2<tbody><tr><td>3<td>4`, "|A|B|\n|---|---|\n|1|2|\n|3|4|\n"},
		{"a cell to the end of its group", `<tr><th>A<th>B<tr><td rowspan=0>1<td>2<tr><td>3<tr><td>4`, "|A|B|\n|---|---|\n|1|2|\n||3|\n||4|\n"},
		{"spans that are no numbers", `<tr><th colspan=x>A<th rowspan=-2>B<tr><td colspan=0>1<td>2`, "|A|B|\n|---|---|\n|1|2|\n"},
		{"short rows", `<tr><th>A<tr><td>1<td>2`, "|A||\n|---|---|\n|1|2|\n"},
		{"a header in a later row", `<tr><td>a<td>b<tr><th>c<td>d`, "|a|b|\n|---|---|\n|c|d|\n"},
		{"the foot before the body", `<thead><tr><th>A<th>B<tfoot><tr><td>5<td>6<tbody><tr><td>1<td>2`, "|A|B|\n|---|---|\n|1|2|\n|5|6|\n"},
		{"a caption", `<caption><p>Two<p>parts</caption><tr><th>A<th>B`, "|A|B|\n|---|---|\n\nTwo  \nparts\n"},
		{"a list in a cell", `<tr><th>A<th>B<tr><td>1<td>of<ul><li>two<li><em>three</em></ul>`, "|A|B|\n|---|---|\n|1|of  <br />• two  <br />• *three*|\n"},
		{"paragraphs in a cell", `<tr><th>A<th>B<tr><td><p>one</p> <p></p><br><hr><p><b>two</b><td><h3>three</h3>`, "|A|B|\n|---|---|\n|one  <br />**two**|three|\n"},
		{"code in a cell", "<tr><th>A<th>B<tr><td><code>a|b</code> | <code>c</code><td><pre>x |\n\n  y</pre>", "|A|B|\n|---|---|\n|`a\\|b` \\| `c`|`x \\|`  <br />`y`|\n"},
		{"a table in a table", `<tr><th>A<th>B<tr><td>1<td><table><tr><td>2<td>3<tr><td>4<td>5</table>`, "|A|B|\n|---|---|\n|1|2 3  <br />4 5|\n"},
		{"tables side by side", `<tr><td>left<table><tr><td>1<td>2</table><td>right<table><tr><td>3<td>4</table>`, "left\n\n|1|2|\n|---|---|\n\nright\n\n|3|4|\n|---|---|\n"},
		{"a frame", `<tr><td><p>one<p>two`, "one\n\ntwo\n"},
		{"line numbers", "<tr>\n<td class=linenos><pre>1\n2</pre>\n<td class=code><div class=highlight-go><pre>a\nb</pre></div>", "```go\na\nb\n```\n"},
		{"a gutter with text", `<tr><td class=gutter>a<td>b`, "|a|b|\n|---|---|\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, inMarkdown(t, "<table>"+tt.in+"</table>", true)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := inMarkdown(t, `<a href=/x><table><tr><td>a<td>b</table></a>`, true); got != "[a  \n\\\nb](https://example.com/x)\n" {
		t.Errorf("a table in a link becomes %q", got)
	}
}

// Whatever a table contains, it becomes a Markdown table of equal rows, or none.
func FuzzTables(f *testing.F) {
	f.Add("<th>a<th>b<tr><td rowspan=2 colspan=3>c<td>|<tr><td><code>|`</code><td>x<br>y")
	f.Add("<caption>a|b</caption><tr><td><table><th>x<td><ul><li>a|b<ol><li>c</table><td rowspan=0><pre>\n|\n</pre>")
	f.Add("<tr><td colspan=1001><tr><td rowspan=99999999999999999999><th>z<tbody><tr><thead><tr><td>h<tfoot><td>`")
	f.Fuzz(func(t *testing.T, in string) {
		d, err := page.Convert(page.Request{
			Body: []byte("<p>before<table><tr>" + in), ContentType: "text/html; charset=utf-8", URL: "https://example.com/", Format: page.Markdown, Whole: true,
		})
		if err != nil {
			return // not a page
		}
		_, table, ok := strings.Cut(d.Text, "\n|---|")
		if !ok || strings.Contains(d.Text, "```") || strings.ContainsAny(in, `-\`) {
			return
		}
		heads := 1 + strings.Count(strings.SplitN(table, "\n", 2)[0], "---|")
		for line := range strings.Lines(strings.SplitN(table, "\n\n", 2)[0]) {
			line = strings.ReplaceAll(line, `\|`, "")
			if strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "|--") && strings.Count(line, "|") != heads+1 {
				t.Errorf("%q has %d cells, want %d in\n%s", line, strings.Count(line, "|")-1, heads, d.Text)
			}
		}
	})
}
