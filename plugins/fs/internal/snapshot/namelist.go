package snapshot

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// MaxListed is how many names a preview lists.
const MaxListed = 1000

// NameList lists the names below a directory that is deleted or restored.
type NameList struct {
	listed []string
	Total  int
}

// Add adds a name.
func (l *NameList) Add(rel string, info fs.FileInfo) {
	l.Total++
	if len(l.listed) == MaxListed {
		return
	}
	l.listed = append(l.listed, Listed(rel, info.Mode(), info.Size()))
}

// Listed returns the line of a file in a list: its name, and its size or kind.
func Listed(name string, mode fs.FileMode, size int64) string {
	switch name = display.VisibleName(name); {
	case mode.IsDir():
		return name + "/"
	case mode.IsRegular():
		return fmt.Sprintf("%s  %d", name, size)
	default:
		return name + "  " + roots.Kind(mode)
	}
}

// Show shows the names without the first one, the directory itself.
func (l *NameList) Show() []tool.Content {
	lines := l.listed[1:]
	content := Bounded("list", strings.Join(lines, "\n"))
	if rest := l.Total - 1 - len(lines); rest > 0 {
		note := fmt.Sprintf("NOT ALL IS SHOWN: %d of %d names are left out.", rest, l.Total-1)
		content = append([]tool.Content{tool.Text(note)}, content...)
	}
	return content
}
