package config

import (
	"os"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/config/diag"
)

// decoder decodes one source into a [Config] and collects the mistakes.
type decoder struct {
	src      *source
	opts     LoadOptions
	files    map[string]*hcl.File // by name
	ctx      *hcl.EvalContext     // functions, and local once known
	mistakes hcl.Diagnostics
	warnings []warning
	secrets  *secrets
	read     []string // files that file() read
	paths    []sandboxPath
	host     account
	users    []string // the users of all tokens and the local user
	program  string   // of this host; "" if it does not matter

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

// parse returns the bodies of all files, and whether their syntax is valid.
func (d *decoder) parse() ([]*hclsyntax.Body, bool) {
	var bodies []*hclsyntax.Body
	for _, f := range d.src.files {
		tokens, _ := hclsyntax.LexConfig(f.bytes, f.name, hcl.InitialPos) // the parser reports its mistakes
		if at, found := tooDeep(tokens); found {
			d.files[f.name] = &hcl.File{Bytes: f.bytes}
			d.mistake(at, "Nested too deep",
				"At most %d brackets and operators can be nested. Move parts into locals, or into several rules.", maxNesting)
			continue
		}
		file, diags := hclsyntax.ParseConfig(f.bytes, f.name, hcl.InitialPos)
		d.files[f.name] = file
		for _, found := range diags {
			if found.Summary == "Invalid single-argument block definition" {
				found.Detail = "A block on one line can hold one argument and no block. Put each argument and each inner block on its own line."
			}
		}
		d.mistakes = append(d.mistakes, diags...)
		if body, ok := file.Body.(*hclsyntax.Body); ok {
			bodies = append(bodies, body)
		}
	}
	return bodies, !d.mistakes.HasErrors()
}

// error returns an error with the mistakes so far, or nil.
func (d *decoder) error() error { return newError(d.mistakes, d.files, d.secrets) }

// mistake records a mistake at a place.
func (d *decoder) mistake(at hcl.Range, summary, format string, args ...any) {
	d.mistakes = append(d.mistakes, diag.Mistake(at, summary, format, args...))
}
