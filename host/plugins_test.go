package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
)

// TestCountInstances: a process that could not be started has not crashed.
func TestCountInstances(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Minute)
	got := countInstances(supervisor.State{Scope: supervisor.PerUser, Instances: []supervisor.Instance{
		{User: "ada", PID: 7},
		{User: "bob", RetryAt: later, LastCrash: &process.Crash{During: supervisor.BeforeStart}},
		{User: "cyd", RetryAt: later, LastCrash: &process.Crash{}},
	}})
	const want = "1, one for each user; 1 more crashed and are not started again yet; 1 more could not be started and are not tried again yet"
	if got != want {
		t.Errorf("countInstances() = %q, want %q", got, want)
	}
}

// TestOwners: a list of plugins ends with the processes of users and sessions, by owner, and names are
// escaped.
func TestOwners(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	a := &app{stdout: &out}
	views := []httpapi.Plugin{
		{State: supervisor.State{Name: "fs", Instances: []supervisor.Instance{{User: "ada", PID: 7, Phase: supervisor.Ready}, {User: "bob\x1b[1m", Phase: supervisor.Backoff}}}},
		{State: supervisor.State{Name: "shell", Instances: []supervisor.Instance{{User: "ada", Session: "one", PID: 8, Phase: supervisor.Ready, Calls: 2}}}},
	}
	if err := a.printOwners(views); err != nil {
		t.Fatal(err)
	}
	const want = `
USER        SESSION  PLUGIN  PHASE    PROCESS  CALLS
ada         -        fs      ready    7        0
ada         one      shell   ready    8        2
bob\x1b[1m  -        fs      backoff  -        0
`
	if got := out.String(); got != want {
		t.Errorf("printed is %s, want %s", got, want)
	}
	out.Reset()
	if err := a.printOwners([]httpapi.Plugin{{State: supervisor.State{Name: "fs"}}}); err != nil || out.Len() > 0 {
		t.Errorf("without such processes, printed is %q, %v", out.String(), err)
	}
	var many []supervisor.Instance
	for n := range maxOwners + 3 {
		many = append(many, supervisor.Instance{User: fmt.Sprint("user", n)})
	}
	if err := a.printOwners([]httpapi.Plugin{{State: supervisor.State{Name: "fs", Instances: many}}}); err != nil || !strings.Contains(out.String(), "\n3 more: ") {
		t.Errorf("of many processes, printed is %q, %v", out.String(), err)
	}
}

// TestBreakageOfAnOwner: a notice about a plugin names the user and the session whose process has
// crashed, and how that crashed.
func TestBreakageOfAnOwner(t *testing.T) {
	t.Parallel()
	crash := func(cause string) *process.Crash { return &process.Crash{Cause: cause, Detail: "signal 9"} }
	s := supervisor.State{Name: "shell", Phase: supervisor.Ready, LastCrash: crash("was killed"), Instances: []supervisor.Instance{
		{User: "ada", Session: "one", Phase: supervisor.Backoff, LastCrash: crash("ran out of memory")},
		{User: "bob", Phase: supervisor.Ready},
	}}
	for _, tt := range []struct{ user, session, want string }{
		{"", "", "shell crashed at 0001-01-01 00:00:00 and was started again: it was killed (signal 9)"},
		{"ada", "one", "of ada in session one: shell crashed: it ran out of memory (signal 9)"},
		{"bob", "", "of bob: "},
	} {
		got := ownerText(tt.user, tt.session) + problem(stateOf(s, tt.user, tt.session, false))
		if tt.user == "" {
			got = strings.Replace(got, time.Time{}.Local().Format(time.DateTime), "0001-01-01 00:00:00", 1)
		}
		if got != tt.want {
			t.Errorf("of %s/%s: %q, want %q", tt.user, tt.session, got, tt.want)
		}
	}
}

// TestNoticeOfABrokenClaim: a notice names the tool, the sign and the call, without control characters.
func TestNoticeOfABrokenClaim(t *testing.T) {
	t.Parallel()
	got := brokenClaim([]byte(`{"id":"tc_1","tool":"peek\u001b[1m","plugin":"probe","sign":"erofs"}`), func(words string) string { return "toolhost " + words })
	if want := `tool peek\x1b[1m claims to be read_only and may have tried to change something (erofs); toolhost journal query --call tc_1`; got != want {
		t.Errorf("brokenClaim() = %q, want %q", got, want)
	}
	s := supervisor.State{Name: "probe", Phase: supervisor.Ready, Instances: []supervisor.Instance{{Reader: true, Phase: supervisor.Broken}}}
	if got := stateOf(s, "", "", false); got.Phase != supervisor.Ready {
		t.Errorf("the state of the process of everybody is %v, which is that of the reader", got.Phase)
	}
	if got := stateOf(s, "", "", true); got.Phase != supervisor.Broken {
		t.Errorf("the state of the reader is %v", got.Phase)
	}
}
