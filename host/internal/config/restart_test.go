package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
)

// TestRestart reads the restart block of a plugin.
func TestRestart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		block, mistake string
		want           supervisor.Restart
	}{
		{block: ""},
		{block: "restart {}"},
		{
			block: "restart {\n max_crashes = 3\n within = \"10m\"\n pause = \"1s\"\n max_pause = \"24h\"\n}",
			want:  supervisor.Restart{MaxCrashes: 3, Within: 10 * time.Minute, Pause: time.Second, MaxPause: 24 * time.Hour},
		},
		{block: "restart { max_crashes = 0 }", mistake: "at least 1"},
		{block: "restart { max_crashes = 1001 }", mistake: "from 1 to 1000"},
		{block: `restart { pause = "0s" }`, mistake: `from "1s" to "24h"`},
		{block: "restart {}\nrestart {}", mistake: "Duplicate block"},
	} {
		cfg, err := load(t, "plugin \"fs\" {\n tier = \"read_only\"\n "+tt.block+"\n}")
		switch {
		case tt.mistake != "":
			if err == nil || !strings.Contains(err.Error(), tt.mistake) {
				t.Errorf("%s: Load() = %v, want %q", tt.block, err, tt.mistake)
			}
		case err != nil:
			t.Errorf("%s: Load() = %v", tt.block, err)
		case cfg.Plugins[0].Supervisor.Restart != tt.want:
			t.Errorf("%s: Restart = %+v, want %+v", tt.block, cfg.Plugins[0].Supervisor.Restart, tt.want)
		}
	}
}
