package main

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxPattern bounds a regular expression, in bytes.
const maxPattern = 4096

// matcher finds the pattern in a line.
type matcher struct{ re *regexp.Regexp }

func (in searchContentArgs) matcher() (*matcher, error) {
	if in.Pattern == "" || len(in.Pattern) > maxPattern {
		return nil, tool.Errorf(tool.InvalidArgument, "pattern has %d bytes, expected 1 to %d", len(in.Pattern), maxPattern)
	}
	expr := in.Pattern
	if in.Literal {
		expr = regexp.QuoteMeta(expr)
	} else if _, err := regexp.Compile(expr); err != nil {
		return nil, tool.Errorf(tool.InvalidArgument, "pattern is not a regular expression: %v", err).
			WithHint("set literal=true to find it as it is")
	}
	if in.Word {
		expr = `\b(?:` + expr + `)\b`
	}
	if in.Case == "insensitive" || (in.Case != "sensitive" && !hasCapital(in.Pattern, in.Literal)) {
		expr = "(?i:" + expr + ")"
	}
	if in.Multiline {
		expr = "(?m:" + expr + ")"
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, tool.Errorf(tool.InvalidArgument, "pattern is not a regular expression: %v", err)
	}
	return &matcher{re}, nil
}

// hasCapital reports whether the pattern has a capital letter that stands for
// itself: \S does not.
func hasCapital(pattern string, literal bool) bool {
	escaped := false
	for _, c := range pattern {
		if unicode.IsUpper(c) && !escaped {
			return true
		}
		escaped = c == '\\' && !escaped && !literal
	}
	return false
}

// find returns where the first match in the line begins, or -1.
func (m *matcher) find(line []byte) int {
	if loc := m.re.FindIndex(line); loc != nil {
		return loc[0]
	}
	return -1
}

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
			only = append(only, g)
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

// skip leaves out what is excluded, and what version control keeps for itself.
func (f *nameFilter) skip(e roots.Entry) bool {
	return isVersionControl(e) || slices.ContainsFunc(f.never, func(g glob) bool { return g.match(e.Rel) })
}

func (f *nameFilter) match(e roots.Entry) bool {
	if len(f.extensions) > 0 && !slices.Contains(f.extensions, strings.ToLower(path.Ext(e.Rel))) {
		return false
	}
	return len(f.only) == 0 || slices.ContainsFunc(f.only, func(g glob) bool { return g.match(e.Rel) })
}

// extensionsOf returns the extensions of the files of a language, or nil.
func extensionsOf(language string) []string {
	switch language {
	case "c":
		return []string{".c", ".h"}
	case "cpp":
		return []string{".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx"}
	case "css":
		return []string{".css", ".scss", ".sass", ".less"}
	case "go":
		return []string{".go"}
	case "html":
		return []string{".html", ".htm"}
	case "java":
		return []string{".java"}
	case "javascript":
		return []string{".js", ".jsx", ".mjs", ".cjs"}
	case "json":
		return []string{".json", ".jsonl"}
	case "kotlin":
		return []string{".kt", ".kts"}
	case "lua":
		return []string{".lua"}
	case "markdown":
		return []string{".md", ".markdown"}
	case "php":
		return []string{".php"}
	case "proto":
		return []string{".proto"}
	case "python":
		return []string{".py", ".pyi"}
	case "ruby":
		return []string{".rb"}
	case "rust":
		return []string{".rs"}
	case "shell":
		return []string{".sh", ".bash", ".zsh"}
	case "sql":
		return []string{".sql"}
	case "swift":
		return []string{".swift"}
	case "toml":
		return []string{".toml"}
	case "typescript":
		return []string{".ts", ".tsx", ".mts", ".cts"}
	case "xml":
		return []string{".xml", ".xsd", ".xsl"}
	case "yaml":
		return []string{".yaml", ".yml"}
	default:
		return nil
	}
}
