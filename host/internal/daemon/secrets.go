package daemon

import (
	"context"
	"os"
	"time"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Bounds on a command that prints a secret.
const (
	maxCommand = 10 * time.Second
	maxPrinted = tool.MiB
)

// readSecrets runs the commands of a configuration that print secrets. It is called by the holder of
// the state directory only, so that no other command of toolhost runs them.
func readSecrets(ctx context.Context, cfg *config.Config) error {
	var env []string
	for _, name := range []string{"PATH", "HOME", "LANG"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return cfg.ReadSecrets(func(argv []string) ([]byte, error) {
		return sandbox.Output(ctx, sandbox.Command{Argv: argv, Env: env, Timeout: maxCommand, MaxOutput: maxPrinted})
	})
}
