// Package notebook writes Jupyter notebooks (format 4) as text: the cells with their numbers,
// sources and outputs. It tells the type and size of an output that is not text, such as an image.
//
// It holds one value of the notebook at a time, and a bounded text.
package notebook

import (
	"fmt"
	"io"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
)

const (
	// MaxSize is the size in bytes of the largest notebook that is read by cells.
	MaxSize = 32 << 20
	// maxText is the size of the text of all cells, and maxSource of the source of one. Cells
	// that do not fit are counted.
	maxText   = 4 << 20
	maxSource = 1 << 20
	// maxOutputs is the size of the text of the outputs of one cell; those that follow are
	// counted. maxOutput is the size of the text of one output.
	maxOutputs = 64 << 10
	maxOutput  = 8 << 10
	// maxName is the size of a type or name that is shown.
	maxName = 60
)

// Notebook is a notebook as text.
type Notebook struct {
	Text []byte
	// Cells is the number of cells, and Shown how many of them Text has.
	Cells, Shown int
	// Language is the programming language; "" if the notebook does not tell.
	Language string
}

// Read reads a notebook. An error tells the place that is not as expected.
func Read(r io.Reader) (Notebook, error) {
	v := newValues(r)
	var n Notebook
	var text strings.Builder
	found := false
	err := v.fields("the notebook", func(name string) error {
		switch name {
		case "cells":
			found = true
			return v.items("cells", func(i int) error { return n.addCell(v, i, &text) })
		case "metadata":
			return v.fields("metadata", func(name string) error { return n.readLanguage(v, name) })
		default:
			return v.skip()
		}
	})
	if err == nil {
		err = v.end()
	}
	if err == nil && !found {
		err = fmt.Errorf("the notebook has no cells, expected one of format 4")
	}
	n.Text = []byte(text.String())
	return n, err
}

// readLanguage reads one entry of the metadata.
func (n *Notebook) readLanguage(v *values, name string) error {
	if name != "language_info" {
		return v.skip()
	}
	return v.fields("metadata.language_info", func(name string) error {
		if name != "name" {
			return v.skip()
		}
		language, _, err := v.text("metadata.language_info.name", maxName)
		n.Language = language
		return err
	})
}

// cell is one cell.
type cell struct {
	kind    string
	run     int // 0 if it was not executed
	source  string
	length  int // of the whole source
	outputs strings.Builder
	more    int // outputs that are not shown
}

// addCell adds a cell to the text, if it fits.
func (n *Notebook) addCell(v *values, i int, text *strings.Builder) error {
	n.Cells++
	if n.Shown < n.Cells-1 || text.Len() > maxText {
		return v.skip()
	}
	var c cell
	where := fmt.Sprintf("cells[%d]", i)
	err := v.fields(where, func(name string) (err error) {
		switch name {
		case "cell_type":
			c.kind, _, err = v.text(where+".cell_type", maxName)
		case "execution_count":
			c.run, err = v.number(where + ".execution_count")
		case "source":
			c.source, c.length, err = v.text(where+".source", maxSource)
		case "outputs":
			err = v.items(where+".outputs", func(i int) error { return c.addOutput(v, fmt.Sprintf("%s.outputs[%d]", where, i)) })
		default:
			err = v.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	n.Shown++
	c.write(text, n.Shown)
	return nil
}

// write writes the cell with its number.
func (c *cell) write(text *strings.Builder, number int) {
	heading := fmt.Sprintf("cell %d", number)
	if c.kind != "" {
		heading += ", " + display.VisibleName(c.kind)
	}
	if c.run > 0 {
		heading += fmt.Sprintf(", run %d", c.run)
	}
	fmt.Fprintf(text, "[%s]\n", heading)
	writeText(text, c.source, c.length)
	text.WriteString(c.outputs.String())
	if c.more > 0 {
		fmt.Fprintf(text, "[%s]\n", display.Plural(c.more, "more output"))
	}
	text.WriteByte('\n')
}

// writeText writes a text with a line end, and how many of its length bytes are missing.
func writeText(to *strings.Builder, text string, length int) {
	to.WriteString(text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		to.WriteByte('\n')
	}
	if more := length - len(text); more > 0 {
		fmt.Fprintf(to, "[%s]\n", display.Plural(more, "more byte"))
	}
}
