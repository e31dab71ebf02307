package sdk_test

import (
	"testing"
	"testing/fstest"

	"github.com/toolhost/toolhost/sdk"
)

func TestDescription(t *testing.T) {
	files := fstest.MapFS{"descriptions/count.md": {Data: []byte("Counts lines.\n")}}
	if got := sdk.Description(files, "count"); got != "Counts lines." {
		t.Errorf("Description = %q", got)
	}
	if got := sdk.Description(files, "other"); got != "" {
		t.Errorf("Description of what has none = %q", got)
	}
}
