package bridged

import (
	"regexp"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// callPattern is a secret in a value, as in headers of the web plugin, or a variable of the host's
// environment.
var callPattern = regexp.MustCompile(`\{\{(secret|env):([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})\}\}`)

// expression returns the expression of a value: secret("name") or env("NAME") alone, or a text with
// such parts.
func expression(value string) hclwrite.Tokens {
	places := callPattern.FindAllStringSubmatchIndex(value, -1)
	switch {
	case len(places) == 0:
		return hclwrite.TokensForValue(cty.StringVal(value))
	case len(places) == 1 && places[0][1]-places[0][0] == len(value):
		return called(value, places[0])
	}
	tokens := hclwrite.Tokens{{Type: hclsyntax.TokenOQuote, Bytes: []byte(`"`)}}
	from := 0
	for _, place := range append(places, []int{len(value), len(value)}) {
		tokens = append(tokens, literal(value[from:place[0]])...)
		if len(place) > 2 {
			tokens = append(tokens, &hclwrite.Token{Type: hclsyntax.TokenTemplateInterp, Bytes: []byte("${")})
			tokens = append(tokens, called(value, place)...)
			tokens = append(tokens, &hclwrite.Token{Type: hclsyntax.TokenTemplateSeqEnd, Bytes: []byte("}")})
		}
		from = place[1]
	}
	return append(tokens, &hclwrite.Token{Type: hclsyntax.TokenCQuote, Bytes: []byte(`"`)})
}

// called returns the call at a place of a value.
func called(value string, place []int) hclwrite.Tokens {
	return call(value[place[2]:place[3]], value[place[4]:place[5]])
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
