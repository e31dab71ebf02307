package bridged

import (
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// Value is a text of several parts: literal ones, and calls of functions of the configuration.
type Value []Part

// Part is a literal text, or the value of a function for that text.
type Part struct {
	// Function is "", "secret" or "env".
	Function string
	Text     string
}

// Literal returns a value that is just a text, whatever is in it.
func Literal(text string) Value { return Value{{Text: text}} }

// Secret returns the value of a secret block, and Env that of a variable of the host's environment.
func Secret(name string) Value { return Value{{"secret", name}} }

// Env is described at [Secret].
func Env(name string) Value { return Value{{"env", name}} }

// secretPattern is a secret in a text that a person writes, as in headers of the web plugin.
var secretPattern = regexp.MustCompile(`\{\{secret:([A-Za-z0-9][A-Za-z0-9_.-]{0,63})\}\}`)

// ParseValue reads a text in which {{secret:NAME}} is the value of a secret block.
func ParseValue(text string) (v Value) {
	for text != "" {
		place := secretPattern.FindStringSubmatchIndex(text)
		if place == nil {
			return append(v, Part{Text: text})
		}
		if place[0] > 0 {
			v = append(v, Part{Text: text[:place[0]]})
		}
		v = append(v, Part{"secret", text[place[2]:place[3]]})
		text = text[place[1]:]
	}
	return v
}

// Plain returns the text of a value without calls, and whether it is one.
func (v Value) Plain() (text string, ok bool) {
	if slices.ContainsFunc(v, func(p Part) bool { return p.Function != "" }) {
		return "", false
	}
	for _, p := range v {
		text += p.Text
	}
	return text, true
}

// tokens returns the expression of a value: a call alone, or a text with calls in it.
func (v Value) tokens() hclwrite.Tokens {
	if text, ok := v.Plain(); ok {
		return hclwrite.TokensForValue(cty.StringVal(text))
	}
	if len(v) == 1 {
		return call(v[0].Function, v[0].Text)
	}
	tokens := hclwrite.Tokens{{Type: hclsyntax.TokenOQuote, Bytes: []byte(`"`)}}
	for i, p := range v {
		if p.Function != "" {
			tokens = append(tokens, interpolated(call(p.Function, p.Text))...)
			continue
		}
		text, dollar := p.Text, ""
		if i < len(v)-1 && strings.HasSuffix(text, "$") { // before ${, it would make that a text
			text, dollar = text[:len(text)-1], "$"
		}
		tokens = append(tokens, literal(text)...)
		if dollar != "" {
			tokens = append(tokens, interpolated(hclwrite.TokensForValue(cty.StringVal(dollar)))...)
		}
	}
	return append(tokens, &hclwrite.Token{Type: hclsyntax.TokenCQuote, Bytes: []byte(`"`)})
}

func interpolated(inner hclwrite.Tokens) hclwrite.Tokens {
	tokens := hclwrite.Tokens{{Type: hclsyntax.TokenTemplateInterp, Bytes: []byte("${")}}
	return append(append(tokens, inner...), &hclwrite.Token{Type: hclsyntax.TokenTemplateSeqEnd, Bytes: []byte("}")})
}

// literal returns the inside of a quoted text.
func literal(text string) hclwrite.Tokens {
	quoted := hclwrite.TokensForValue(cty.StringVal(text))
	return quoted[1 : len(quoted)-1]
}

// call returns a call of a function with one text.
func call(function, argument string) hclwrite.Tokens {
	return hclwrite.TokensForFunctionCall(function, hclwrite.TokensForValue(cty.StringVal(argument)))
}

// isName reports whether a text can be the name in an object without quotes.
func isName(text string) bool {
	return hclsyntax.ValidIdentifier(text) && !slices.Contains([]string{"for", "if", "else", "endif", "in", "endfor", "true", "false", "null"}, text)
}
