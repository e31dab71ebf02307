//go:build !race

package supervisor

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

func TestFloodsDoNotHarm(t *testing.T) {
	t.Parallel()
	k := keep(t, "calm")
	if got := k.mustCall(t, "calm", "flood"); got != "flooded" {
		t.Errorf("the result is %q", got)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	log := k.log.String()
	if !strings.Contains(log, "lines were left out") {
		t.Error("the log does not say that lines were left out")
	}
	if n := strings.Count(log, "\n"); n > 4000 {
		t.Errorf("40,000 lines of the plugin became %d of the log", n)
	}

	k = keep(t, "calm")
	var size int
	_, _, err := k.Run(t.Context(), "calm", "", tool.Call{ID: "tc_1", Tool: "large_chunks", Arguments: []byte(`{}`)}, tool.Sink{
		Chunk: func(c tool.Chunk) { size += len(c.Data) },
	})
	if err != nil || size != 100<<20 {
		t.Errorf("100 MiB in chunks: Run() = %v, %d bytes", err, size)
	}
}
