package sdk

import "io/fs"

// Description returns what a model is told about a tool, for [tool.Spec]: the text
// of descriptions/NAME.md in files, which a plugin embeds. It returns "" if there is
// none, which adding the tool then reports with the tool's name.
func Description(files fs.FS, name string) string {
	text, err := fs.ReadFile(files, "descriptions/"+name+".md")
	if err != nil {
		return ""
	}
	return string(text)
}
