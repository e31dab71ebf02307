package approval_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/state/store"
)

// In the environment, victimDir makes this binary a host that works in that
// directory until it is killed; careless makes it run a call before it spends
// the approval.
const (
	victimDir = "TOOLHOST_APPROVAL_TEST_DIR"
	careless  = "TOOLHOST_APPROVAL_TEST_CARELESS"
)

// fewCalls is the trace of a call that a grant of few uses has allowed.
const (
	fewCalls = "few"
	fewUses  = 60
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		fmt.Fprintln(os.Stdout, "error", victim(context.Background(), dir, os.Getenv(careless) != ""))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// victim asks, decides and spends, one call after the other, and prints what was acknowledged.
// It first handles what earlier victims left.
func victim(ctx context.Context, dir string, careless bool) error {
	s, err := store.Open(ctx, store.Options{Dir: dir})
	if err != nil {
		return err
	}
	grants, err := approval.NewGrants(ctx, approval.GrantOptions{Store: s})
	if err != nil {
		return err
	}
	service, err := approval.New(ctx, approval.Options{Store: s, Grants: grants, MaxOpen: 1000})
	if err != nil {
		return err
	}
	// The effect of a call: a line in a file.
	counter, err := os.OpenFile(filepath.Join(dir, "counter"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	run := func(id string) error {
		_, err := counter.WriteString(id + "\n")
		fmt.Fprintln(os.Stdout, "ran", id)
		return err
	}
	left, err := service.List(ctx, approval.Filter{By: approver("ada"), Limit: 1000})
	if err != nil {
		return err
	}
	todo := []string{}
	for _, r := range left {
		todo = append(todo, r.Call)
	}
	few := approval.Call{User: "ada", Plugin: "p", Tool: "few"}
	for n := 0; ; n++ {
		if ids := grants.Covering(&few); n%4 == 3 && len(ids) > 0 {
			if err := grants.Use(ctx, ids); err != nil {
				return err
			}
			if err := run(fewCalls); err != nil {
				return err
			}
		}
		call := fmt.Sprintf("%d-%d", os.Getpid(), n)
		if n < len(todo) {
			call = todo[n] // the very same call again
		}
		q := question(fmt.Sprintf(`{"call":%q}`, call))
		q.Call = call
		r, err := service.Ask(ctx, q)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, "asked", r.ID)
		if r.State == approval.Open {
			if r, err = service.Decide(ctx, approval.Decision{
				ID: r.ID, By: approver("ada"), Approve: n%3 > 0, Grant: terms(n%3 > 0 && n%7 == 1),
				ArgumentsHash: r.ArgumentsHash, PreviewDigest: r.PreviewDigest,
			}); err != nil {
				return err
			}
			fmt.Fprintln(os.Stdout, r.State, r.ID)
		}
		if r.State != approval.Approved || n%5 == 4 { // some are left for another
			continue
		}
		if careless {
			if err := run(r.ID); err != nil {
				return err
			}
			select {} // it is killed before it writes the outcome
		}
		if err := service.Spend(ctx, r.ID, call, q.Binding()); err != nil {
			return err
		}
		if err := run(r.ID); err != nil {
			return err
		}
	}
}

// round starts a victim and kills it after it has said some lines, which are
// added to said.
func round(t *testing.T, dir string, runFirst bool, lines int, said *[]string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimDir+"="+dir)
	if runFirst {
		cmd.Env = append(cmd.Env, careless+"=1")
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(out)
	for n := 0; scanner.Scan(); n++ {
		line := scanner.Text()
		if strings.HasPrefix(line, "error") {
			t.Errorf("the host says %s", line)
		}
		*said = append(*said, line)
		if n == lines || runFirst && strings.HasPrefix(line, "ran") {
			_ = cmd.Process.Kill() // and it may say more until it dies
		}
	}
	_ = cmd.Wait() // it was killed
}

// runs returns how often each approved call ran.
func runs(t *testing.T, dir string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "counter"))
	if err != nil {
		t.Fatal(err)
	}
	n := make(map[string]int)
	for id := range strings.FieldsSeq(string(text)) {
		n[id]++
	}
	return n
}

func mustJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
