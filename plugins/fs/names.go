package main

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxListed is how many names of what goes or comes a preview lists.
const maxListed = 1000

// nameList is the names of what goes or comes, as far as a preview lists them.
type nameList struct {
	listed []string
	total  int
}

// add notes a name.
func (l *nameList) add(rel string, info fs.FileInfo) {
	l.total++
	if len(l.listed) == maxListed {
		return
	}
	l.listed = append(l.listed, listed(rel, info.Mode(), info.Size()))
}

// listed is a file in a list: its name, and its size or kind.
func listed(name string, mode fs.FileMode, size int64) string {
	switch name = tool.VisibleName(name); {
	case mode.IsDir():
		return name + "/"
	case mode.IsRegular():
		return fmt.Sprintf("%s  %d", name, size)
	default:
		return name + "  " + roots.Kind(mode)
	}
}

// show shows the names, without the first: that is of the directory itself.
func (l *nameList) show() []tool.Content {
	lines := l.listed[1:]
	content := bounded("list", strings.Join(lines, "\n"))
	if rest := l.total - 1 - len(lines); rest > 0 {
		note := fmt.Sprintf("NOT ALL IS SHOWN: %d of %d names are left out.", rest, l.total-1)
		content = append([]tool.Content{tool.Text(note)}, content...)
	}
	return content
}
