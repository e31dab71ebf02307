package config

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestSampleIsComplete compares the sample in docs/configuration.md that claims to be complete
// with every block and argument. Other tests check that the sample is valid.
func TestSampleIsComplete(t *testing.T) {
	page, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sample, _ := strings.Cut(string(page), "```hcl\n")
	sample, _, _ = strings.Cut(sample, "```")
	seen := 0
	var look func(block reflect.Type)
	look = func(block reflect.Type) {
		for field := range block.Fields() {
			name, kind, _ := strings.Cut(field.Tag.Get("hcl"), ",")
			if name == "" || strings.HasPrefix(kind, "label") {
				continue
			}
			seen++
			if !regexp.MustCompile(`(?m)^ *(?:# )?` + name + ` +(?:=|"[a-z_-]+" +\{|\{)`).MatchString(sample) {
				t.Errorf("the sample in docs/configuration.md lacks %s of a %s", name, block.Name())
			}
			if kind == "block" {
				look(field.Type.Elem())
			}
		}
	}
	look(reflect.TypeFor[rootBlock]())
	if seen < 40 {
		t.Errorf("%d names found: the test would prove nothing", seen)
	}
}
