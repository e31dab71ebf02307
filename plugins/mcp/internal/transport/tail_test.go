package transport_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/mcp/internal/transport"
)

func TestTail(t *testing.T) {
	t.Parallel()
	var lines []string
	tail := &transport.Tail{Line: func(line string) { lines = append(lines, line) }, Redact: strings.NewReplacer("secret", "[hidden]").Replace}
	tail.Write([]byte("one\n\ntwo is sec"))
	tail.Write([]byte("ret\x1b[2J\n\xff" + strings.Repeat("x", 1<<20)))
	if got := tail.Last(100); !strings.HasPrefix(got, "\uFFFDxxx") || len(got) > 110 {
		t.Errorf("the last line is %.200q, want the line that has no end yet, cut", got)
	}
	tail.Write([]byte("\n"))
	for i := range 100 {
		tail.Write(fmt.Appendf(nil, "line %d\n", i))
	}
	if got, want := tail.Last(20), "line 98 | line 99"; got != want {
		t.Errorf("the last lines are %q, want %q", got, want)
	}
	if got := strings.Count(tail.Last(1<<20), " | "); got != 19 {
		t.Errorf("%d lines are kept, want 20", got+1)
	}
	if lines[0] != "one" || lines[1] != `two is [hidden]\x1b[2J` || len(lines[2]) > 1100 || len(lines) != 103 {
		t.Errorf("the lines are %.100q", lines)
	}
}
