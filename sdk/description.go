package sdk

import (
	"io/fs"
	"strings"
)

// Description returns the description of a tool for [tool.Spec]: the text of
// descriptions/NAME.md in files, which a plugin embeds. If there is no such file, it
// returns "", and adding the tool reports the missing description.
func Description(files fs.FS, name string) string {
	text, err := fs.ReadFile(files, "descriptions/"+name+".md")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
