package config

import (
	"maps"
	"regexp"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/config/diag"
)

// secretName matches the names that the sdk lets plugins request.
var secretName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// grantable reads the secret blocks and returns their values by name. The values are
// hidden like those of env(), also if they are written out in the file.
func (d *decoder) grantable(blocks []secretBlock) map[string]string {
	values := make(map[string]string)
	firsts := make(map[string]hcl.Range)
	for _, block := range blocks {
		if first, taken := firsts[block.Name]; taken {
			d.mistake(block.NameRange, "Duplicate secret", "Another secret %q is at %s. Give each secret its own name.", block.Name, diag.Place(first))
			continue
		}
		firsts[block.Name] = block.NameRange
		if !secretName.MatchString(block.Name) {
			d.mistake(block.NameRange, "Invalid secret name",
				"%q cannot be a secret's name: expected a letter or digit, then at most 63 letters, digits, _, - and .", block.Name)
		}
		if d.absent(block.Value) {
			d.mistake(block.Range, "Missing value", "Secret %q needs a value: add value = env(\"NAME\") or value = file(\"path\").", block.Name)
		}
		value, _ := d.text(block.Value, "a text")
		d.secrets.add(value)
		values[block.Name] = value
	}
	return values
}

// granted reads the secrets that a plugin may request, and returns their values by
// name.
func (d *decoder) granted(attr *hcl.Attribute, values map[string]string) map[string]string {
	if attr == nil {
		return nil
	}
	granted := make(map[string]string)
	for _, w := range d.words(attr, `a list of secrets such as ["brave"]`) {
		value, known := values[w.text]
		_, twice := granted[w.text]
		switch {
		case !known:
			d.mistake(w.expr.Range(), "Unknown secret", "There is no secret block %s.%s", quote(w.expr, w.text),
				diag.DidYouMean(w.text, slices.Sorted(maps.Keys(values))))
		case twice:
			d.mistake(w.expr.Range(), "Duplicate secret", "%s is already in the list.", quote(w.expr, w.text))
		default:
			granted[w.text] = value
		}
	}
	return granted
}
