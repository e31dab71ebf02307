package page

import (
	"errors"
	"strconv"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	// maxAddedCells bounds the empty cells that fill the tables of a page: a few bytes of
	// spans may ask for billions.
	maxAddedCells = 100_000
	// maxColumns is the largest colspan that HTML allows.
	maxColumns = 1000
	// maxRows is the largest rowspan that HTML allows.
	maxRows = 65_534
)

// tables prepares the tables of a page for the Markdown library, which writes each as a
// list of rows of the same length, a line per row.
type tables struct {
	added int // empty cells so far
}

// prepare prepares the tables in a node. within reports whether the node is in an element
// that cannot contain a Markdown table, such as a link.
func (t *tables) prepare(n *html.Node, within bool) {
	if n.Type == html.ElementNode {
		switch n.DataAtom { //nolint:exhaustive // other elements need nothing
		case atom.A, atom.B, atom.Strong, atom.Em, atom.I, atom.Del, atom.S, atom.Strike:
			within = true
		case atom.Table:
			t.table(n, within)
		}
	}
	for child := range n.ChildNodes() {
		t.prepare(child, within)
	}
}

// table prepares one table: with data as rows of cells of one line each, or as blocks.
func (t *tables) table(table *html.Node, within bool) {
	groups := rowGroups(table)
	var rows [][]*html.Node
	if attribute(table, "role") != "presentation" && !within && !layout(table, groups) {
		rows = t.fill(groups)
	}
	if rows == nil {
		asBlocks(table)
		return
	}
	for n := table.FirstChild; n != nil; {
		next := n.NextSibling
		if n.DataAtom == atom.Caption {
			oneLine(n)
		} else {
			table.RemoveChild(n)
		}
		n = next
	}
	for _, row := range rows {
		tr := element(atom.Tr)
		for _, cell := range row {
			if cell.Parent != nil {
				cell.Parent.RemoveChild(cell)
			}
			rename(cell, atom.Td) // the library would move rows with a th to the top
			oneLine(cell)
			tr.AppendChild(cell)
		}
		table.AppendChild(tr)
	}
}

// rowGroups returns the cells of a table by group and row, as a browser shows them: head,
// bodies, foot.
func rowGroups(table *html.Node) [][][]*html.Node {
	var head, bodies, foot [][][]*html.Node
	for group := range table.ChildNodes() {
		var rows [][]*html.Node
		for tr := range group.ChildNodes() {
			if tr.DataAtom != atom.Tr {
				continue
			}
			var cells []*html.Node
			for cell := range tr.ChildNodes() {
				if cell.DataAtom == atom.Td || cell.DataAtom == atom.Th {
					cells = append(cells, cell)
				}
			}
			rows = append(rows, cells)
		}
		switch group.DataAtom { //nolint:exhaustive // other elements need nothing
		case atom.Thead:
			head = append(head, rows)
		case atom.Tbody:
			bodies = append(bodies, rows)
		case atom.Tfoot:
			foot = append(foot, rows)
		}
	}
	return append(append(head, bodies...), foot...)
}

// layout reports whether a table only arranges its content: it has at most one cell, or
// blocks such as lists or other tables but no headers.
func layout(table *html.Node, groups [][][]*html.Node) bool {
	cells, headers := 0, 0
	for _, rows := range groups {
		for _, row := range rows {
			for _, cell := range row {
				cells++
				if cell.DataAtom == atom.Th || cell.Parent.Parent.DataAtom == atom.Thead {
					headers++
				}
			}
		}
	}
	if cells < 2 {
		return true
	}
	if headers > 0 {
		return false
	}
	for d := range table.Descendants() {
		switch d.DataAtom { //nolint:exhaustive // other elements need nothing
		case atom.Table, atom.Ul, atom.Ol, atom.Hr, atom.Blockquote, atom.Pre, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
			return true
		}
	}
	return false
}

// fill adds empty cells where cells span several columns or rows, and at the end of short
// rows. It returns nil if there are too many.
func (t *tables) fill(groups [][][]*html.Node) [][]*html.Node {
	var all [][]*html.Node
	width, added := 0, t.added
	for _, rows := range groups {
		var spanned []int // for each column, the number of next rows that a cell above spans
		for y, cells := range rows {
			var row []*html.Node
			for len(cells) > 0 || len(row) < len(spanned) {
				if added > maxAddedCells {
					return nil
				}
				if x := len(row); x < len(spanned) && spanned[x] > 0 || len(cells) == 0 {
					row = append(row, nil)
					spanned[x] = max(0, spanned[x]-1)
					added++
					continue
				}
				down := min(span(cells[0], "rowspan", maxRows), len(rows)-y) - 1
				for i := range min(span(cells[0], "colspan", 1), maxColumns) {
					if len(row) == len(spanned) {
						spanned = append(spanned, 0)
					}
					spanned[len(row)] = max(spanned[len(row)]-1, down)
					if i == 0 {
						row = append(row, cells[0])
						continue
					}
					row = append(row, nil)
					added++
				}
				cells = cells[1:]
			}
			for len(spanned) > 0 && spanned[len(spanned)-1] == 0 {
				spanned = spanned[:len(spanned)-1]
			}
			all, width = append(all, row), max(width, len(row))
		}
	}
	for _, row := range all {
		if added += width - len(row); added > maxAddedCells {
			return nil
		}
	}
	t.added = added
	for y, row := range all {
		row = append(row, make([]*html.Node, width-len(row))...)
		for x, cell := range row {
			if cell == nil {
				row[x] = element(atom.Td)
			}
		}
		all[y] = row
	}
	return all
}

// span returns how many columns or rows a cell spans; zero is the value for "0".
func span(cell *html.Node, name string, zero int) int {
	n, err := strconv.Atoi(attribute(cell, name))
	setAttribute(cell, name, "")
	switch {
	case errors.Is(err, strconv.ErrRange):
		return maxRows
	case err != nil, n < 0:
		return 1
	case n == 0:
		return zero
	}
	return n
}

// asBlocks turns a table into blocks, one for each cell.
func asBlocks(table *html.Node) {
	for group := range table.ChildNodes() {
		for tr := range group.ChildNodes() {
			for cell := range tr.ChildNodes() {
				if cell.DataAtom == atom.Td || cell.DataAtom == atom.Th {
					rename(cell, atom.Div)
				}
			}
			if tr.DataAtom == atom.Tr {
				rename(tr, atom.Div)
			}
		}
		switch group.DataAtom { //nolint:exhaustive // other elements need nothing
		case atom.Caption, atom.Thead, atom.Tbody, atom.Tfoot:
			rename(group, atom.Div)
		}
	}
	rename(table, atom.Div)
}

func element(name atom.Atom) *html.Node {
	return &html.Node{Type: html.ElementNode, DataAtom: name, Data: name.String()}
}

func rename(n *html.Node, name atom.Atom) { n.DataAtom, n.Data = name, name.String() }
