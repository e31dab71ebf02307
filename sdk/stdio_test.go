package sdk

import (
	"strings"
	"testing"
)

// TestCopyHandshake shows that the host reads the handshake and nothing else,
// whatever is printed around it.
func TestCopyHandshake(t *testing.T) {
	const line = "1|1|unix|/run/p.sock|grpc|"
	for _, tt := range []struct{ name, in, host, other string }{
		{"alone", line + "\n", line + "AQI\n", ""},
		{"before", "Starting up\n1|x\n" + line + "\n", line + "AQI\n", "Starting up\n1|x\n"},
		{"on the same line", "Starting up... " + line + "\n", line + "AQI\n", "Starting up... "},
		{"after", line + "\nready\nand", line + "AQI\n", "ready\nand"},
		{"a further field", line + "|true\n", line + "AQI|true\n", ""},
		{"none", "hello\n", "", "hello\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var host, other strings.Builder
			copyHandshake(&host, &other, strings.NewReader(tt.in), []byte{1, 2})
			if host.String() != tt.host || other.String() != tt.other {
				t.Errorf("host reads %q and stderr %q, want %q and %q", host.String(), other.String(), tt.host, tt.other)
			}
		})
	}
}
