package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	var log strings.Builder
	w := (&Config{Secrets: []string{"hunter2", "hunter2-long"}}).Redact(&log)
	for _, line := range []string{"key hunter2 and hunter2-long\n", "quoted \"hunter2\"\n", "nothing\n"} {
		if n, err := fmt.Fprint(w, line); n != len(line) || err != nil {
			t.Errorf("Write(%q) = %d, %v", line, n, err)
		}
	}
	if want := "key (hidden) and (hidden)\nquoted (hidden)\nnothing\n"; log.String() != want {
		t.Errorf("logged %q, want %q", log.String(), want)
	}
}
