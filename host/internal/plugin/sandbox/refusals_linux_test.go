package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// startLacking starts a program as a host would on a machine that lacks what several
// of machines do.
func startLacking(t *testing.T, c Confinement, names ...string) outcome {
	t.Helper()
	order, err := json.Marshal(c)
	must(t, err)
	cmd := exec.Command("/proc/self/exe", append([]string{"attack", "lacking", string(order)}, names...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	var got outcome
	must(t, json.Unmarshal(out, &got))
	return got
}

// refusalPrograms are hosts on machines that lack more than one thing.
func refusalPrograms() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"lacking": func(args []string) error {
			var c Confinement
			if err := json.Unmarshal([]byte(args[0]), &c); err != nil {
				return err
			}
			for _, name := range args[1:] {
				m := machines()[name]
				if err := m.refuse(); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			return json.NewEncoder(os.Stdout).Encode(startOn(context.Background(), c))
		},
	}
}
