package config

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/toolhost/toolhost/host/internal/config/diag"
)

// once reports blocks that occur twice where they may occur once. The bodies are
// those of one block, of all blocks that are read as one, or of all files if block
// is "".
func (d *decoder) once(block string, bodies ...*hclsyntax.Body) {
	single := onceBlocks(block)
	if len(single) == 0 {
		return
	}
	firsts := make(map[string]hcl.Range)
	var policies []*hclsyntax.Body
	for _, body := range bodies {
		for _, inner := range body.Blocks {
			if block == "" && inner.Type == "policy" {
				policies = append(policies, inner.Body)
				continue
			}
			d.once(inner.Type, inner.Body)
			if !slices.Contains(single, inner.Type) {
				continue
			}
			if first, taken := firsts[inner.Type]; taken {
				d.mistake(inner.DefRange(), "Duplicate block", "Another %s block is at %s. Put everything into one.", inner.Type, diag.Place(first))
				continue
			}
			firsts[inner.Type] = inner.DefRange()
		}
	}
	if len(policies) > 0 {
		d.once("policy", policies...)
		d.onceArguments("policy", policies)
	}
}

// onceArguments reports arguments that occur in two of the blocks that are read as
// one. Twice in one block is a syntax error.
func (d *decoder) onceArguments(block string, bodies []*hclsyntax.Body) {
	firsts := make(map[string]hcl.Range)
	for _, body := range bodies {
		for name, argument := range body.Attributes {
			if first, taken := firsts[name]; taken {
				d.mistake(argument.NameRange, "Duplicate argument",
					"%s is also set at %s. All %s blocks are read as one, so set it in one of them only.", name, diag.Place(first), block)
				continue
			}
			firsts[name] = argument.NameRange
		}
	}
}
