package page

import (
	"bytes"
	"fmt"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
)

// markdown returns the extract as CommonMark with tables.
func markdown(found extract) (text string, err error) {
	defer func() {
		if r := recover(); r != nil { // the library panics on some pages
			err = fmt.Errorf("write markdown: %v", r)
		}
	}()
	conv := converter.NewConverter(converter.WithPlugins(
		base.NewBasePlugin(), strikethrough.NewStrikethroughPlugin(),
		commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false), commonmark.WithLinkEmptyHrefBehavior(commonmark.LinkBehaviorSkip)),
		table.NewTablePlugin(
			table.WithHeaderPromotion(true), table.WithSkipEmptyRows(true), table.WithCellPaddingBehavior(table.CellPaddingBehaviorNone),
			table.WithNewlineBehavior(table.NewlineBehaviorPreserve),
		),
	))
	var out bytes.Buffer
	if found.how == "article" && found.title != "" && !found.heading() {
		fmt.Fprintf(&out, "# %s\n\n", line(found.title))
	}
	var prepared tables
	for i, n := range found.nodes {
		showLanguages(n)
		prepared.prepare(n, false)
		part, err := conv.ConvertNode(n)
		if err != nil {
			return "", err
		}
		if i > 0 {
			out.WriteString("\n\n")
		}
		out.Write(bytes.TrimSpace(part))
	}
	out.WriteByte('\n')
	return out.String(), nil
}
