package glob

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Filter selects files by their names.
type Filter struct {
	only, never []Glob
	extensions  []string
}

// NewFilter returns a filter for files that match one of globs, if there are any, and
// have one of the languages types, if there are any. A glob that begins with ! excludes
// files and directories.
func NewFilter(globs, types []string) (*Filter, error) {
	var only, never []string
	for _, g := range globs {
		if excluded, ok := strings.CutPrefix(g, "!"); ok {
			never = append(never, excluded)
		} else {
			only = append(only, below(g))
		}
	}
	f := &Filter{}
	var err error
	if f.only, err = ParseAll(only); err != nil {
		return nil, err
	}
	if f.never, err = ParseAll(never); err != nil {
		return nil, err
	}
	known := languages()
	for _, name := range types {
		extensions := known[strings.ToLower(name)]
		if extensions == nil {
			return nil, tool.Errorf(tool.InvalidArgument, "type %.40q is not known", name).
				WithHint("use globs, such as *.ext, or one of %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		f.extensions = append(f.extensions, extensions...)
	}
	return f, nil
}

// below turns a glob for a directory, which ends in a slash, into one for all its content.
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

// Skip reports whether an entry is excluded, or belongs to version control.
func (f *Filter) Skip(e filetree.Entry) bool {
	return IsVersionControl(e) || MatchAny(f.never, e)
}

// Match reports whether a file is selected.
func (f *Filter) Match(e filetree.Entry) bool {
	if len(f.extensions) > 0 && !slices.Contains(f.extensions, strings.ToLower(path.Ext(e.Name))) {
		return false
	}
	return len(f.only) == 0 || MatchAny(f.only, e)
}

// IsVersionControl reports whether e is the directory of a version control system.
func IsVersionControl(e filetree.Entry) bool {
	return e.IsDir() && slices.Contains([]string{".git", ".hg", ".svn", ".jj"}, e.Name)
}

// languages returns the extensions of the files of each language.
func languages() map[string][]string {
	return map[string][]string{
		"c":          {".c", ".h"},
		"cpp":        {".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx"},
		"css":        {".css", ".scss", ".sass", ".less"},
		"go":         {".go"},
		"html":       {".html", ".htm"},
		"java":       {".java"},
		"javascript": {".js", ".jsx", ".mjs", ".cjs"},
		"json":       {".json", ".jsonl"},
		"js":         {".js", ".jsx", ".mjs", ".cjs"},
		"kotlin":     {".kt", ".kts"},
		"lua":        {".lua"},
		"markdown":   {".md", ".markdown"},
		"md":         {".md", ".markdown"},
		"php":        {".php"},
		"proto":      {".proto"},
		"python":     {".py", ".pyi"},
		"py":         {".py", ".pyi"},
		"ruby":       {".rb"},
		"rust":       {".rs"},
		"shell":      {".sh", ".bash", ".zsh"},
		"sql":        {".sql"},
		"swift":      {".swift"},
		"toml":       {".toml"},
		"ts":         {".ts", ".tsx", ".mts", ".cts"},
		"typescript": {".ts", ".tsx", ".mts", ".cts"},
		"xml":        {".xml", ".xsd", ".xsl"},
		"yaml":       {".yaml", ".yml"},
	}
}
