package main

import (
	"path"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
	"github.com/toolhost/toolhost/sdk/tool"
)

// nameFilter is which files are searched.
type nameFilter struct {
	only, never []glob
	extensions  []string
}

func (in searchContentArgs) nameFilter() (*nameFilter, error) {
	var only, never []string
	for _, g := range in.Globs {
		if excluded, ok := strings.CutPrefix(g, "!"); ok {
			never = append(never, excluded)
		} else {
			only = append(only, below(g))
		}
	}
	f := &nameFilter{}
	var err error
	if f.only, err = parseGlobs(only); err != nil {
		return nil, err
	}
	if f.never, err = parseGlobs(never); err != nil {
		return nil, err
	}
	for _, name := range in.Types {
		extensions := extensionsOf(name)
		if extensions == nil {
			return nil, tool.Errorf(tool.InvalidArgument, "type %.40q is not known", name).WithHint("use globs, such as *.ext")
		}
		f.extensions = append(f.extensions, extensions...)
	}
	return f, nil
}

// below makes a glob for a directory, which ends in a slash, one for all that is
// in it.
func below(pattern string) string {
	dir, ok := strings.CutSuffix(pattern, "/")
	if !ok {
		return pattern
	}
	if !strings.Contains(dir, "/") {
		dir = "**/" + dir
	}
	return dir + "/**"
}

// skip leaves out what is excluded, and what version control keeps for itself.
func (f *nameFilter) skip(e filetree.Entry) bool {
	return isVersionControl(e) || matchesAny(f.never, e)
}

func (f *nameFilter) match(e filetree.Entry) bool {
	if len(f.extensions) > 0 && !slices.Contains(f.extensions, strings.ToLower(path.Ext(e.Name))) {
		return false
	}
	return len(f.only) == 0 || matchesAny(f.only, e)
}

// isVersionControl reports whether e is a directory that version control keeps
// for itself.
func isVersionControl(e filetree.Entry) bool {
	return e.IsDir() && slices.Contains([]string{".git", ".hg", ".svn", ".jj"}, e.Name)
}

// extensionsOf returns the extensions of the files of a language, or nil.
func extensionsOf(language string) []string {
	return map[string][]string{
		"c":          {".c", ".h"},
		"cpp":        {".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx"},
		"css":        {".css", ".scss", ".sass", ".less"},
		"go":         {".go"},
		"html":       {".html", ".htm"},
		"java":       {".java"},
		"javascript": {".js", ".jsx", ".mjs", ".cjs"},
		"json":       {".json", ".jsonl"},
		"kotlin":     {".kt", ".kts"},
		"lua":        {".lua"},
		"markdown":   {".md", ".markdown"},
		"php":        {".php"},
		"proto":      {".proto"},
		"python":     {".py", ".pyi"},
		"ruby":       {".rb"},
		"rust":       {".rs"},
		"shell":      {".sh", ".bash", ".zsh"},
		"sql":        {".sql"},
		"swift":      {".swift"},
		"toml":       {".toml"},
		"typescript": {".ts", ".tsx", ".mts", ".cts"},
		"xml":        {".xml", ".xsd", ".xsl"},
		"yaml":       {".yaml", ".yml"},
	}[language]
}
