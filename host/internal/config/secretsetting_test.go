package config_test

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/config"
)

// TestSecretInSettings: a plugin's settings can name secret blocks, whose values stay hidden.
func TestSecretInSettings(t *testing.T) {
	const blocks = `workspace = "."
secret "token" { value = env("TOKEN") }
secret "printed" { exec = ["/bin/cat", "/dev/null"] }
secret "own" { for = "user" }
`
	const schema = `{"type":"object","properties":{"env":{"type":"object","additionalProperties":{"type":"string"}}}}`
	for _, tt := range []struct{ name, setting, want, mistake string }{
		{"in a map", `env = { KEY = secret("token"), HEADER = "Bearer ${secret("token")}" }`, `{"env":{"HEADER":"Bearer hunter2-hunter2","KEY":"hunter2-hunter2"}}`, ""},
		{"unknown", `env = { KEY = secret("tokn") }`, "", `there is no secret block "tokn". Did you mean "token"?`},
		{"of users", `env = { KEY = secret("own") }`, "", `each user sets a value of secret "own"`},
		{"printed", `env = { KEY = secret("printed") }`, "", `secret "printed" has no value in the configuration`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, map[string]string{"config.hcl": blocks + "plugin \"p\" {\n tier = \"read_only\"\n config {\n" + tt.setting + "\n}\n}\n"})
			cfg, err := config.Load(dir, config.LoadOptions{LookupEnv: environment(map[string]string{"TOKEN": "hunter2-hunter2\n"})})
			if tt.mistake != "" {
				if err == nil || !strings.Contains(err.Error(), tt.mistake) {
					t.Fatalf("Load error = %v, want %s", err, tt.mistake)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := cfg.Plugins[0].Supervisor.Settings([]byte(schema))
			if err != nil || string(got) != tt.want {
				t.Errorf("settings = %s, %v, want %s", got, err, tt.want)
			}
			if shown := cfg.Hide("it printed hunter2-hunter2"); strings.Contains(shown, "hunter2") {
				t.Errorf("a log line is %q", shown)
			}
			if len(cfg.Plugins[0].Supervisor.Secrets) > 0 {
				t.Error("calls of the plugin can request the secret")
			}
		})
	}
	dir := write(t, map[string]string{"config.hcl": blocks + "plugin \"p\" {\n path = secret(\"token\")\n tier = \"read_only\"\n}\n"})
	if _, err := config.Load(dir, config.LoadOptions{LookupEnv: environment(map[string]string{"TOKEN": "x"})}); err == nil || !strings.Contains(err.Error(), `There is no function named "secret"`) {
		t.Errorf("Load of a secret outside of settings = %v", err)
	}
}
