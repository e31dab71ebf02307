package config

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// once reports each block that stands a second time where it may stand once.
// The bodies are those of one block, or of all files if block is "".
func (d *decoder) once(block string, bodies ...*hclsyntax.Body) {
	single := onceBlocks(block)
	if len(single) == 0 {
		return
	}
	firsts := make(map[string]hcl.Range)
	for _, body := range bodies {
		for _, inner := range body.Blocks {
			d.once(inner.Type, inner.Body)
			if !slices.Contains(single, inner.Type) {
				continue
			}
			if first, taken := firsts[inner.Type]; taken {
				d.mistake(inner.DefRange(), "Duplicate block", "There is a block of type %s at %s already. Put everything into one.", inner.Type, place(first))
				continue
			}
			firsts[inner.Type] = inner.DefRange()
		}
	}
}
