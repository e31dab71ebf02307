package approval_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/host/internal/approval"
	"github.com/toolhost/toolhost/host/internal/store"
	"github.com/toolhost/toolhost/internal/soak"
)

// In the environment, victimDir makes this binary a host that works in that
// directory until it is killed; careless makes it run a call before it spends
// the approval.
const (
	victimDir = "TOOLHOST_APPROVAL_TEST_DIR"
	careless  = "TOOLHOST_APPROVAL_TEST_CARELESS"
)

// fewCalls is what a call leaves that a grant of few uses has let through.
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

// victim asks, decides and spends, one call after the other, and says what was
// acknowledged. It begins with what earlier victims left.
func victim(ctx context.Context, dir string, careless bool) error {
	s, err := store.Open(ctx, store.Options{Dir: dir})
	if err != nil {
		return err
	}
	grants, err := approval.NewGrants(ctx, approval.GrantOptions{Store: s})
	if err != nil {
		return err
	}
	desk, err := approval.New(ctx, approval.Options{Store: s, Grants: grants, MaxOpen: 1000})
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
	left, err := desk.List(ctx, approval.Filter{By: approver("ada"), Limit: 1000})
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
		r, err := desk.Ask(ctx, q)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, "asked", r.ID)
		if r.State == approval.Open {
			if r, err = desk.Decide(ctx, approval.Decision{
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
			select {} // it is killed before it writes what it did
		}
		if err := desk.Spend(ctx, r.ID, call, q.Binding()); err != nil {
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

func TestKilledAtAnyMoment(t *testing.T) {
	dir := t.TempDir()
	before := open(t, dir, approval.Options{})
	q := question(`{}`)
	q.Tool = "few"
	record := before.ask(t, q)
	if _, err := before.desk.Decide(t.Context(), before.seeing(t, approval.Decision{ID: record.ID, By: approver("ada"), Approve: true, Grant: &approval.Terms{Uses: fewUses}})); err != nil {
		t.Fatal(err)
	}
	if err := before.desk.Spend(t.Context(), record.ID, "tc_1", q.Binding()); err != nil {
		t.Fatal(err)
	}
	before.close(t)
	before.desk, before.grants = nil, nil
	var said []string
	rounds := soak.Rounds(15, 50)
	for range rounds {
		round(t, dir, false, 1+rand.IntN(60), &said)
	}
	r := open(t, dir, approval.Options{})
	seen := make(map[string]int)
	asked := make(map[string]int)
	for _, line := range said {
		what, id, _ := strings.Cut(line, " ")
		if id == fewCalls {
			continue
		}
		got, err := r.desk.Get(t.Context(), id)
		if err != nil {
			t.Fatalf("%s: Get = %v", line, err)
		}
		seen[what]++
		if what == "asked" {
			asked[id]++
		}
		switch {
		case what == "rejected" && got.State != approval.Rejected,
			what == "approved" && got.State != approval.Approved && got.State != approval.Spent,
			what == "ran" && got.State != approval.Spent:
			t.Errorf("%s: it is %s now", line, got.State)
		}
	}
	for _, what := range []string{"asked", "approved", "rejected", "ran"} {
		if seen[what] < rounds {
			t.Errorf("%q was said %d times in %d rounds: the rounds are too short", what, seen[what], rounds)
		}
	}
	if len(asked) == seen["asked"] {
		t.Error("no record of an earlier round was taken up again")
	}
	ran := runs(t, dir)
	if ran[fewCalls] < fewUses/2 {
		t.Errorf("of %d uses of a grant %d calls came, so the test shows little", fewUses, ran[fewCalls])
	}
	for id, n := range ran {
		if most := map[bool]int{true: fewUses, false: 1}[id == fewCalls]; n > most {
			t.Errorf("%s ran %d times, want at most %d", id, n, most)
		}
	}
	if _, covered := r.covering("ada", "p", "put"); !covered {
		t.Error("a grant that was acknowledged is not there")
	}
	t.Logf("said: %v, %d of them again", seen, seen["asked"]-len(asked))
}

// A host that runs the call first and writes that down afterwards runs it again.
func TestKilledWithoutTheGuard(t *testing.T) {
	dir := t.TempDir()
	var said []string
	round(t, dir, true, -1, &said)
	round(t, dir, true, -1, &said)
	most := 0
	for _, n := range runs(t, dir) {
		most = max(most, n)
	}
	if most < 2 {
		t.Errorf("no call ran twice: %s", mustJSON(said))
	}
}

func mustJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
