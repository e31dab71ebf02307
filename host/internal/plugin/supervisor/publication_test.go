package supervisor

import (
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// TestPublicationOfForeignTools: answers of people about tools that another program defines are about
// that program too, and about how it is started.
func TestPublicationOfForeignTools(t *testing.T) {
	digest := func(foreign bool, runs, settings string) string {
		m := &manager{plugin: Plugin{Name: "p", Runs: runs}, learned: learned{outcome: settings}}
		return m.publication("sha256:1", []tool.Spec{{Name: "say", Foreign: foreign}}).Digest
	}
	same := digest(true, "package 1", "settings 1")
	if digest(true, "package 1", "settings 1") != same {
		t.Error("the same publication has two digests")
	}
	for name, other := range map[string]string{
		"another package": digest(true, "package 2", "settings 1"), "other settings": digest(true, "package 1", "settings 2"),
	} {
		if other == same {
			t.Errorf("%s does not change the digest", name)
		}
	}
	if digest(false, "", "settings 1") != digest(false, "", "settings 2") {
		t.Error("the settings of a plugin with tools of its own change the digest")
	}
}
