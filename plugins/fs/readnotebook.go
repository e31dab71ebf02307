package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/toolhost/toolhost/plugins/fs/internal/notebook"
	"github.com/toolhost/toolhost/plugins/fs/internal/page"
	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// isNotebook reports whether a file has the name of a Jupyter notebook.
func isNotebook(name string) bool { return strings.EqualFold(path.Ext(name), ".ipynb") }

// readNotebook returns a window of the cells of a notebook as text. If they cannot be read, it
// returns one of the JSON, and why.
func (w *workspace) readNotebook(ctx context.Context, f *file, in readFileArgs, view textfile.Window) (tool.Result, error) {
	book, digest, err := w.cells(ctx, f)
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	if err != nil {
		raw := w.fitted(view, f, in)
		raw.Budget = view.Budget - page.MaxNote
		if err := checkWindow(raw); err != nil {
			return tool.Result{}, err
		}
		result, readErr := f.read(ctx, raw)
		note := fmt.Sprintf("[shown as JSON and not by cells: %s]", page.Shorten(err.Error(), page.MaxNote-50))
		result.Content = append(result.Content, tool.Text(note))
		return result, readErr
	}
	text := &file{
		File: f.File, content: bytes.NewReader(book.Text), path: f.path, size: int64(len(book.Text)),
		charset: textfile.Charset{Name: "utf-8", Unit: 1},
	}
	more := ""
	if book.Shown < book.Cells {
		more = fmt.Sprintf("[%s more, which are too large to show; the encoding utf-8 shows their JSON]", display.Plural(book.Cells-book.Shown, "cell"))
		view.Budget -= len(more)
	}
	result, err := text.read(ctx, w.fitted(view, text, in))
	if err != nil {
		return tool.Result{}, err
	}
	if more != "" {
		result.Content = append(result.Content, tool.Text(more))
	}
	facts := result.Metadata
	delete(facts, "eol")
	facts["total_bytes"], facts["hash"], facts["encoding"], facts["cells"] = f.size, digest, f.charset.Name, book.Cells
	if book.Language != "" {
		facts["language"] = book.Language
	}
	return result, nil
}

// cells reads the cells of a notebook, and returns the hash of the file.
func (w *workspace) cells(ctx context.Context, f *file) (notebook.Notebook, string, error) {
	if f.size > notebook.MaxSize {
		return notebook.Notebook{}, "", fmt.Errorf("the notebook has %d bytes; the maximum for cells is %d", f.size, notebook.MaxSize)
	}
	release, err := w.holdRoom(ctx, f.size/4) // it takes about four times its size
	if err != nil {
		return notebook.Notebook{}, "", err
	}
	defer release()
	digest := sha256.New()
	raw := io.TeeReader(until(ctx, io.NewSectionReader(f, 0, f.size)), digest)
	if _, err := io.CopyN(io.Discard, raw, int64(f.charset.BOM)); err != nil && !errors.Is(err, io.EOF) {
		return notebook.Notebook{}, "", snapshot.ReadError(err)
	}
	book, err := notebook.Read(f.charset.Text(raw))
	return book, fmt.Sprintf("sha256:%x", digest.Sum(nil)), err
}

// readerFunc is a function that reads.
type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// until returns a reader of r that ends with ctx.
func until(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return r.Read(p)
	})
}
