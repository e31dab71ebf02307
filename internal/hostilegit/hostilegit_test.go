package hostilegit

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/sdk/gitenv"
)

// Plain git starts the programs of nearly all repositories. With the environment of package
// gitenv, git starts only those that a case names.
func TestCases(t *testing.T) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if got := fires(t, c, nil); got == c.Quiet {
				t.Errorf("plain git starts the program: %t, want %t", got, !c.Quiet)
			}
			if got := fires(t, c, gitenv.Environment()); got && c.Held {
				t.Error("the environment does not hold the program")
			}
		})
	}
}

func fires(t *testing.T, c Case, env []string) bool {
	t.Helper()
	dir := t.TempDir()
	mark := c.Make(t, filepath.Join(dir, "r"))
	for _, line := range Commands(filepath.Join(dir, "r", c.Dir)) {
		git := exec.CommandContext(t.Context(), "bash", "-c", line)
		git.Dir, git.Env = dir, append(Environment(dir), env...)
		if out, err := git.CombinedOutput(); err != nil {
			t.Logf("%s: %v\n%s", line, err, out)
		}
	}
	_, err := os.Stat(mark)
	return err == nil
}
