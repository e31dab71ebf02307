package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

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

// namesFile refuses a name that is that of a directory by how it ends: roots takes
// it for the name without that.
func namesFile(name string) error {
	for _, end := range []string{"/", "/.", "/.."} {
		if strings.HasSuffix(name, end) {
			return tool.Errorf(tool.InvalidArgument, "%s names a directory, since it ends in %s, but here is a file", tool.VisibleName(name), end).
				WithHint("give the whole path with the name of the file, such as %s", tool.VisibleName(path.Join(name, "file.txt")))
		}
	}
	return nil
}

// fits refuses a place for what has the given name and mode, if it is or is
// called a directory: what comes there does not go into it.
func fits(dest *roots.Target, given, source string, mode fs.FileMode) error {
	whole := tool.VisibleName(path.Join(dest.String(), path.Base(source)))
	if info := dest.Info(); info != nil && info.IsDir() {
		return tool.Errorf(tool.Failed, "Failed to write file: %s is a directory, which is never replaced", tool.VisibleName(dest.String())).
			WithHint("dest is the whole new path; to put it into the directory give %s", whole)
	}
	if mode.IsDir() {
		return nil
	}
	return namesFile(given)
}

// explainMissing does what explainName does for the name in the error.
func explainMissing(err error) error {
	var known *tool.Error
	if !errors.As(err, &known) {
		return err
	}
	shown, _ := strings.CutPrefix(known.Message, "File not found: ")
	quoted, unquoteErr := strconv.QuotedPrefix(shown)
	if unquoteErr != nil {
		return err
	}
	name, unquoteErr := strconv.Unquote(quoted)
	if unquoteErr != nil {
		return err
	}
	return explainName(name, err)
}

// explainName says more of an error if nothing was found by a name that results
// show, but which is written otherwise, as [tool.VisibleName] does.
func explainName(name string, err error) error {
	var known *tool.Error
	if !errors.As(err, &known) || known.Code != tool.NotFound || !strings.Contains(name, `\`) {
		return err
	}
	real, unquoteErr := strconv.Unquote(`"` + strings.TrimSuffix(strings.TrimPrefix(name, `"`), `"`) + `"`)
	switch {
	case unquoteErr != nil:
		return err
	case !utf8.ValidString(real):
		return known.WithHint("the real name is not UTF-8, which is shown by escapes and which no tool can name; ask the user to rename the file")
	default:
		return known.WithHint("names of special characters are shown in quotes with escapes; give the name as it is, without these")
	}
}
