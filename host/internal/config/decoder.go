package config

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
)

// decoder turns one source into a [Config] and collects the mistakes.
type decoder struct {
	src      *source
	opts     LoadOptions
	files    map[string]*hcl.File // by name
	ctx      *hcl.EvalContext     // functions, and local once known
	mistakes hcl.Diagnostics
	warnings []warning
	secrets  *secrets
	read     []string // what file has read
	paths    []sandboxPath
	host     account
	users    []string // who calls, of all tokens and of the account
	program  string   // of this host; "" if nobody asks
	// conditions are what the conditions of rules may call; nil before the first.
	conditions functionTable
	simplifier simplifier

	localNames []string // of all locals blocks, sorted
}

func newDecoder(src *source, opts LoadOptions) *decoder {
	d := &decoder{
		src:     src,
		opts:    opts,
		files:   make(map[string]*hcl.File),
		secrets: &secrets{},
		host:    account{uid: os.Geteuid(), gid: os.Getegid()},
	}
	d.ctx = &hcl.EvalContext{
		Functions: d.functions(),
		Variables: map[string]cty.Value{"local": cty.EmptyObjectVal},
	}
	return d
}

// parse returns the bodies of all files, and whether their syntax is right.
func (d *decoder) parse() ([]*hclsyntax.Body, bool) {
	var bodies []*hclsyntax.Body
	tokens := 0
	for _, f := range d.src.files {
		n, ok := d.bounded(f, tokens)
		if tokens += n; !ok {
			continue
		}
		file, diags := hclsyntax.ParseConfig(f.bytes, f.name, hcl.InitialPos)
		d.files[f.name] = file
		for _, diag := range diags {
			if diag.Summary == "Invalid single-argument block definition" {
				diag.Detail = "A block on one line holds a single argument and no block. Put each argument, and each block inside, on a line of its own."
			}
		}
		d.mistakes = append(d.mistakes, diags...)
		if body, ok := file.Body.(*hclsyntax.Body); ok {
			bodies = append(bodies, body)
		}
	}
	return bodies, !d.mistakes.HasErrors()
}

// bounded returns how many tokens a file holds, and whether it can be parsed, with
// before of them in other files.
func (d *decoder) bounded(f sourceFile, before int) (tokens int, ok bool) {
	all, _ := hclsyntax.LexConfig(f.bytes, f.name, hcl.InitialPos) // its mistakes are the parser's, too
	if at, found := tooLong(all, before); found {
		d.files[f.name] = &hcl.File{Bytes: f.bytes}
		d.mistake(at, "Configuration too long",
			"All files together may hold at most %d words and signs. A rule can name several tools, with patterns, and its condition several cases.", maxTokens)
		return len(all), false
	}
	if at, found := tooDeep(all); found {
		d.files[f.name] = &hcl.File{Bytes: f.bytes}
		d.mistake(at, "Nested too deep",
			"There may be at most %d brackets and operators inside each other. Put parts of it into locals, or into several rules.", maxNesting)
		return len(all), false
	}
	return len(all), true
}

// error returns the mistakes so far, or nil.
func (d *decoder) error() error { return newError(d.mistakes, d.files, d.secrets) }

// mistake records what is wrong at a place.
func (d *decoder) mistake(at hcl.Range, summary, format string, args ...any) {
	d.mistakes = append(d.mistakes, mistakeAt(at, summary, format, args...))
}

// didYouMean returns a sentence with the name nearest to given, to follow
// another sentence, or "".
func didYouMean(given string, names []string) string {
	near := schema.Nearest(given, names)
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf(" Did you mean %q?", near[0])
}

// nearestOrAll is [didYouMean], or all names if none is near.
func nearestOrAll(given string, names []string) string {
	return cmp.Or(didYouMean(given, names), " There are "+strings.Join(names, ", ")+".")
}
