package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/pdf"
	"github.com/toolhost/toolhost/sdk/tool"
)

const pdfType = "application/pdf"

// parsePages reads a range of pages: "3", "3-7" or "3-". A last page of 0 is the end.
func parsePages(text string) (first, last int, err error) {
	if text == "" {
		return 1, 0, nil
	}
	from, to, isRange := strings.Cut(text, "-")
	first, err = strconv.Atoi(strings.TrimSpace(from))
	last = first
	if to = strings.TrimSpace(to); err == nil && isRange {
		if last = 0; to != "" {
			last, err = strconv.Atoi(to)
		}
	}
	if err != nil || first < 1 || last < 0 || last > 0 && last < first || isRange && to != "" && last == 0 {
		return 0, 0, tool.Errorf(tool.InvalidArgument, `pages is %s, expected a page or a range of pages, counted from 1`, strconv.Quote(display.Cut(text, 40))).
			WithHint(`such as "3", "3-7", or "3-" for as many as fit`)
	}
	return first, last, nil
}

// writePages writes a range of pages for the argument.
func writePages(first, last int) string {
	switch last {
	case first:
		return strconv.Itoa(first)
	case 0:
		return strconv.Itoa(first) + "-"
	default:
		return fmt.Sprintf("%d-%d", first, last)
	}
}

// readPDF returns the text of pages, as many as fit, or a window of their lines.
func (w *workspace) readPDF(ctx context.Context, f *file, in readFileArgs, view textfile.Window) (tool.Result, error) {
	first, last, err := parsePages(in.Pages)
	if err != nil {
		return tool.Result{}, err
	}
	if view.Offset < 0 {
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "offset is %d, but %s is a PDF, whose lines are counted from the first page that is read", view.Offset, display.VisibleName(f.path)).
			WithHint("select the last pages with pages")
	}
	if in.Limit == nil {
		view.Limit = maxLines
	}
	enough := view.Budget
	if view.Offset > 1 || view.Column > 1 {
		lines := min(view.Offset, w.maxRead/1000) // the product has no more room than maxRead
		enough = min(view.Budget+min(view.Column, w.maxRead)+1000*lines, w.maxRead)
	}
	read, err := w.pages(ctx, f, pdf.Request{First: first, Last: last, Bytes: enough})
	if e := tool.AsError(err); err != nil && e.Code == tool.ResourceExhausted && e.Hint == "" {
		err = e.WithHint("select fewer pages with pages")
	}
	if err != nil {
		return tool.Result{}, err
	}
	if len(read.Pages) == 0 {
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "pages is %s, but %s has %s", writePages(first, last), display.VisibleName(f.path), display.Plural(read.Total, "page"))
	}
	text := pagesText(read.Pages)
	shown, err := textfile.Scan(ctx, bytes.NewReader(text.content.Bytes()), view, int64(text.content.Len()), true)
	if err != nil {
		return tool.Result{}, err
	}
	if shown.Short || shown.Last < view.Offset {
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "offset is %d and column %d, but the pages %s of %s that are read have %d lines",
			view.Offset, view.Column, writePages(read.Pages[0].Number, read.Pages[len(read.Pages)-1].Number), display.VisibleName(f.path), shown.Lines).
			WithHint("select other pages, and omit offset and column")
	}
	if whole := text.lineOfPage(shown.Last); whole >= view.Offset && in.Limit == nil && !shown.Cut && shown.Last < shown.Lines {
		view.Limit = whole - view.Offset + 1 // whole pages only
		if shown, err = textfile.Scan(ctx, bytes.NewReader(text.content.Bytes()), view, int64(text.content.Len()), true); err != nil {
			return tool.Result{}, err
		}
	}
	return f.pagesResult(read, text, shown, last), nil
}

// pages reads pages in a process of its own.
func (w *workspace) pages(ctx context.Context, f *file, q pdf.Request) (pdf.Document, error) {
	release, err := w.holdRoom(ctx, allRoom) // the process has a lot of memory
	if err != nil {
		return pdf.Document{}, err
	}
	defer release()
	read, err := pdf.ReadFile(ctx, f.File, f.size, q)
	if ctx.Err() != nil {
		return pdf.Document{}, context.Cause(ctx)
	}
	if failure := tool.AsError(err); failure != nil {
		if failure.Hint == "" {
			failure = failure.WithHint("ask for the document in another format; the encoding latin1 shows the bytes of the file")
		}
		return pdf.Document{}, failure
	}
	return read, nil
}

// pagedText is the text of pages, each after a heading, and the line where each ends.
type pagedText struct {
	content bytes.Buffer
	pages   []pdf.Page
	ends    []int
}

// pagesText writes pages.
func pagesText(pages []pdf.Page) *pagedText {
	t := &pagedText{pages: pages}
	line := 0
	for _, p := range pages {
		text := fmt.Sprintf("[page %d]\n%s\n", p.Number, p.Text)
		switch {
		case p.Incomplete && p.Text == "":
			text = fmt.Sprintf("[page %d cannot be read]\n", p.Number)
		case p.Incomplete:
			text += "[the rest of this page cannot be read]\n"
		case p.Text == "":
			text = fmt.Sprintf("[page %d has no text, but perhaps images]\n", p.Number)
		}
		t.content.WriteString(text)
		line += strings.Count(text, "\n")
		t.ends = append(t.ends, line)
	}
	return t
}

// pageOf returns the index of the page that a line belongs to.
func (t *pagedText) pageOf(line int) int {
	for i, end := range t.ends {
		if line <= end {
			return i
		}
	}
	return len(t.ends) - 1
}

// lineOfPage returns the last line that ends a page, up to a line; 0 if there is none.
func (t *pagedText) lineOfPage(line int) int {
	whole := 0
	for _, end := range t.ends {
		if end <= line {
			whole = end
		}
	}
	return whole
}

// pagesResult returns the pages, with the facts about them, and says how to go on to page last.
func (f *file) pagesResult(read pdf.Document, text *pagedText, shown textfile.Excerpt, last int) tool.Result {
	from, to := text.pageOf(shown.First), text.pageOf(shown.Last)
	first, end := text.pages[from].Number, text.pages[to].Number
	facts := map[string]any{
		"path": f.path, "media_type": f.mediaType, "total_bytes": f.size, "first_page": first, "last_page": end, "total_pages": read.Total,
	}
	for name, value := range map[string]string{"title": read.Title, "author": read.Author} {
		if value != "" {
			facts[name] = value
		}
	}
	pages := fmt.Sprintf("pages %d-%d of %d", first, end, read.Total)
	if first == end {
		pages = fmt.Sprintf("page %d of %d", first, read.Total)
	}
	if last == 0 {
		last = math.MaxInt
	}
	last = min(last, read.Total)
	note := ""
	switch {
	case shown.Cut || shown.Last < text.ends[to]:
		// The page goes on. Its lines are counted from its heading.
		before := 0
		if to > 0 {
			before = text.ends[to-1]
		}
		facts["next_pages"], facts["next_offset"] = writePages(end, last), shown.Last-before+1
		note = fmt.Sprintf("[%s; continue in page %d with pages=%s offset=%d]", pages, end, facts["next_pages"], facts["next_offset"])
		if shown.Cut {
			facts["next_offset"], facts["next_column"] = shown.Last-before, shown.Next
			note = fmt.Sprintf("[%s; continue in page %d with pages=%s offset=%d column=%d]", pages, end, facts["next_pages"], facts["next_offset"], shown.Next)
		}
	case end < read.Total:
		if end >= last {
			last = read.Total
		}
		facts["next_pages"] = writePages(end+1, last)
		note = fmt.Sprintf("[%s; continue with pages=%s]", pages, facts["next_pages"])
	case first > 1:
		note = fmt.Sprintf("[%s, the end]", pages)
	}
	result := tool.Result{Content: []tool.Content{{Kind: tool.KindText, Data: shown.Text}}, Metadata: facts}
	if note != "" {
		result.Content = append(result.Content, tool.Text(note))
	}
	return result
}
