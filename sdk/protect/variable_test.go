package protect_test

import (
	"testing"

	"github.com/toolhost/toolhost/sdk/protect"
)

func TestVariable(t *testing.T) {
	for name, want := range map[string]bool{
		"LD_PRELOAD": true, "DYLD_INSERT_LIBRARIES": true, "GIT_EXTERNAL_DIFF": true, "SSH_ASKPASS": true, "BASH_ENV": true, "ENV": true, "IFS": true,
		"LANG": false, "TZ": false, "HTTPS_PROXY": false, "ENVIRONMENT": false, "": false,
	} {
		if got := protect.Variable(name); got != want {
			t.Errorf("Variable(%q) = %v, want %v", name, got, want)
		}
	}
}
