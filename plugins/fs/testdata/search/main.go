// Command search is the engine of search_content without the plugin around it:
// it prints the lines below a directory that match, as ripgrep does. The
// benchmarks and tests compare the two.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"sync"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
	"github.com/toolhost/toolhost/plugins/fs/internal/search"
	"github.com/toolhost/toolhost/sdk/roots"
)

func main() {
	column := flag.Bool("column", false, "print where the first match in the line begins")
	literal := flag.Bool("F", false, "take the pattern as plain text")
	fold := flag.Bool("i", false, "ignore case")
	word := flag.Bool("w", false, "match whole words only")
	flag.Parse()
	expr := flag.Arg(0)
	if *literal {
		expr = regexp.QuoteMeta(expr)
	}
	if *fold {
		expr = "(?i:" + expr + ")"
	}
	if err := run(expr, *word, flag.Arg(1), *column); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(expr string, word bool, dir string, column bool) error {
	pattern, err := search.Compile(expr, search.How{Words: word})
	if err != nil {
		return err
	}
	r, err := roots.Open([]string{dir}, roots.Options{Secrets: []string{}})
	if err != nil {
		return err
	}
	defer r.Close()
	t, err := filetree.Open(r, ".", filetree.Options{Gitignore: true, Skip: func(e filetree.Entry) bool { return e.Name[0] == '.' }})
	if err != nil {
		return err
	}
	defer t.Close()
	out := &output{w: bufio.NewWriterSize(os.Stdout, 64<<10)}
	defer out.flush(nil)
	var visits []filetree.Visit
	for range runtime.GOMAXPROCS(0) {
		visits = append(visits, visit(pattern.Searcher(search.Options{Numbers: true}), out, column))
	}
	return t.Each(context.Background(), visits)
}

// visit returns what searches files on one processor.
func visit(s *search.Searcher, out *output, column bool) filetree.Visit {
	var text []byte
	return func(e filetree.Entry, err error) {
		if err != nil || !e.Type.IsRegular() {
			return
		}
		f, err := e.Open()
		if err != nil {
			return
		}
		defer f.Close()
		path := ""
		_, _ = s.Search(f, f.Size(), func(l search.Line) bool {
			if path == "" {
				path = e.Path()
			}
			text = append(text, path...)
			text = append(text, ':')
			text = strconv.AppendInt(text, int64(l.Number), 10)
			text = append(text, ':')
			if column {
				text = strconv.AppendInt(text, int64(s.Begin(l.Text)+1), 10)
				text = append(text, ':')
			}
			text = append(text, l.Text...)
			text = append(text, '\n')
			return true
		})
		out.flush(text)
		text = text[:0]
	}
}

// output is what several goroutines write to.
type output struct {
	mu sync.Mutex // guards w
	w  *bufio.Writer
}

// flush writes text, and without one, all that waits.
func (o *output) flush(text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = o.w.Write(text)
	if text == nil {
		_ = o.w.Flush()
	}
}
