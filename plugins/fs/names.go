package main

import (
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// namesFile refuses a name whose end makes it a directory; package roots ignores such an
// end.
func namesFile(name string) error {
	for _, end := range []string{"/", "/.", "/.."} {
		if strings.HasSuffix(name, end) {
			return tool.Errorf(tool.InvalidArgument, "%s ends in %s, so it names a directory, but a file is expected", display.VisibleName(name), end).
				WithHint("use the path of the file, such as %s", display.VisibleName(path.Join(name, "file.txt")))
		}
	}
	return nil
}

// fits refuses a destination that is a directory, or a name of one, for a file: files are
// not moved into a directory.
func fits(dest *roots.Target, given, source string, mode fs.FileMode) error {
	whole := display.VisibleName(path.Join(dest.String(), path.Base(source)))
	if info := dest.Info(); info != nil && info.IsDir() {
		return tool.Errorf(tool.Failed, "Failed to write file: %s is a directory, which is never replaced", display.VisibleName(dest.String())).
			WithHint("dest is the whole new path; to put it into the directory give %s", whole)
	}
	if mode.IsDir() {
		return nil
	}
	return namesFile(given)
}

// explainMissing applies explainName to the name in the error.
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

// explainName explains an error about a name that was copied from a result with its
// escapes; see [display.VisibleName].
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
		return known.WithHint("names of special characters are shown in quotes with escapes; give the name itself, without them")
	}
}
