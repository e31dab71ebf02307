package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// startSleep starts a job that sleeps.
func startSleep(t *testing.T) func() (*job, error) {
	t.Helper()
	set := defaults()
	return func() (*job, error) {
		p := &program{settings: &set, command: proc.Command{Path: "sleep", Args: []string{"1000"}}}
		return startJob(t.Context(), p, nil)
	}
}

func newTestOwners() *owners {
	o := newOwners()
	o.bound(bounds{jobs: 2, jobsOfUser: 3, shells: 2, idle: time.Hour})
	return o
}

// A session that ends while a job or a shell of it starts takes it along.
func TestStartsEndWithTheirSession(t *testing.T) {
	who := owner{"ann", "s1"}
	for end, stop := range map[string]func(*owners){"its end": func(o *owners) { o.end("s1") }, "the plugin's": (*owners).close} {
		o := newTestOwners()
		var started *job
		_, err := o.startJob(who, func() (j *job, err error) {
			started, err = startSleep(t)()
			stop(o)
			return started, err
		})
		if err == nil {
			t.Errorf("%s: a job is started", end)
		}
		<-started.ended // or the test hangs

		o = newTestOwners()
		s, leave, err := o.enter(t.Context(), who)
		if err != nil {
			t.Fatal(err)
		}
		set := defaults()
		var shell *living
		_, _, err = o.living(s, func() (l *living, err error) {
			shell, err = startLiving(t.Context(), &program{settings: &set})
			stop(o)
			return shell, err
		})
		if err == nil {
			t.Errorf("%s: a shell is started", end)
		}
		leave()
		<-shell.process.Done()

		if _, err := o.startJob(who, startSleep(t)); err == nil {
			t.Errorf("%s: a job is started afterwards", end)
		}
		if _, _, err := o.enter(t.Context(), who); err == nil {
			t.Errorf("%s: the shell is entered afterwards", end)
		}
	}
}

// When the plugin has been told to stop, nothing of it is left.
func TestCloseWaits(t *testing.T) {
	o := newTestOwners()
	j, err := o.startJob(owner{"ann", "s1"}, startSleep(t))
	if err != nil {
		t.Fatal(err)
	}
	o.close()
	select {
	case <-j.process.Done():
	default:
		t.Error("the job has not ended when close returns")
	}
}

// A session is not idle while one of its calls runs, or a job of it starts.
func TestBusySessionIsNotIdle(t *testing.T) {
	who := owner{"ann", "s1"}
	o := newTestOwners()
	expire := func() bool {
		o.mu.Lock()
		s := o.all[who]
		s.used = time.Time{}
		o.mu.Unlock()
		o.expire(s)
		return s.over
	}
	j, err := o.startJob(who, func() (*job, error) {
		if expire() {
			t.Error("a session ends while a job of it starts")
		}
		return startSleep(t)()
	})
	if err != nil {
		t.Fatal(err)
	}
	end := o.begin(who)
	if expire() {
		t.Error("a session ends while a call of it runs")
	}
	end()
	if o.all[who].used.IsZero() {
		t.Error("the end of a call is not noted")
	}
	_, leave, err := o.enter(t.Context(), who)
	if err != nil {
		t.Fatal(err)
	}
	if expire() {
		t.Error("a session ends while its shell runs a command")
	}
	leave()
	if !expire() { // the control run
		t.Error("a session does not end when it is idle")
	}
	<-j.ended
}

// What is remembered of sessions that have ended is bounded.
func TestEndedSessionsAreForgotten(t *testing.T) {
	o := newTestOwners()
	for i := range 3 * maxGone {
		o.end(fmt.Sprint(i))
	}
	if len(o.gone) > maxGone || o.refuse(owner{"ann", fmt.Sprint(3*maxGone - 1)}) == nil {
		t.Errorf("%d sessions are remembered, or the last is not", len(o.gone))
	}
}

// So is what is remembered of sessions that were idle for too long and had a
// shell: their next one knows of it, until that was told.
func TestIdleShellsAreRemembered(t *testing.T) {
	o := newTestOwners()
	visit := func(i int, untold bool) (before bool) {
		o.mu.Lock()
		s := o.make(owner{"ann", fmt.Sprint(i)})
		before, s.untold = s.untold, untold
		s.used = time.Time{}
		o.mu.Unlock()
		o.expire(s)
		return before
	}
	for i := range 3 * maxUntold {
		if visit(i, true) {
			t.Errorf("session %d is new, and has had a shell", i)
		}
	}
	if len(o.untold) > maxUntold {
		t.Errorf("%d sessions are remembered", len(o.untold))
	}
	last := 3*maxUntold - 1
	if !visit(last, true) || !visit(last, false) {
		t.Error("the last session has had no shell")
	}
	if visit(last, false) {
		t.Error("the last session is told twice")
	}
}

// Nobody can name the job of another session, or of another user.
func TestJobsAreTheirOwners(t *testing.T) {
	p, _ := startShell(t, nil)
	id := as(t, p, "ann", "s1", "shell_background", map[string]any{"command": "echo private; sleep 1000"}).Metadata["job"]
	for _, tt := range []struct {
		user, session string
		mine          bool
	}{{"ann", "s2", false}, {"bob", "s1", false}, {"ann", "s1", true}} {
		for name, args := range map[string]map[string]any{
			"process_output": {"wait": 300}, "process_input": {"data": "x"}, "process_kill": {"signal": "CONT"},
		} {
			args["job"] = id
			got := as(t, p, tt.user, tt.session, name, args)
			if tt.mine != (got.Error == nil) || !tt.mine && (got.Error.Code != tool.NotFound || got.Text() != "") {
				t.Errorf("%s of user %q in session %s: %q, %v", name, tt.user, tt.session, got.Text(), got.Error)
			}
		}
		if got := as(t, p, tt.user, tt.session, "process_list", map[string]any{}); strings.Contains(got.Text(), "private") != tt.mine {
			t.Errorf("the jobs of user %q in session %s: %q", tt.user, tt.session, got.Text())
		}
	}
}

// However many sessions a user calls his own, the jobs of them that have ended
// are as few as those that may run.
func TestEndedJobsAreForgotten(t *testing.T) {
	const ofSession, ofUser = 3, 5
	p, _ := startShell(t, map[string]any{"max_jobs": ofSession, "max_jobs_per_user": ofUser})
	run := func(user, session string) string {
		got := as(t, p, user, session, "shell_background", map[string]any{"command": "true"})
		if got.Error != nil {
			t.Fatal(got.Error)
		}
		id := got.Metadata["job"].(string)
		for over := false; !over; {
			over = as(t, p, user, session, "process_output", map[string]any{"job": id, "wait": 300}).Metadata["running"] == false
		}
		return id
	}
	listed := func(user, session string) string {
		return as(t, p, user, session, "process_list", map[string]any{}).Text()
	}
	bobs := run("bob", "s1")
	var last string
	for range 10 {
		last = run("ann", "s0")
	}
	// One more has ended since the last start.
	if got := listed("ann", "s0"); strings.Count(got, "job_") > ofSession+1 || !strings.Contains(got, last) {
		t.Errorf("after 10 jobs of a session it has %q", got)
	}
	for i := range 10 {
		run("ann", fmt.Sprint("s", i))
	}
	n := 0
	for i := range 10 {
		n += strings.Count(listed("ann", fmt.Sprint("s", i)), "job_")
	}
	if n < ofUser || n > ofUser+1 {
		t.Errorf("after 20 jobs in 10 sessions the user has %d, want %d and the last", n, ofUser)
	}
	if got := listed("bob", "s1"); !strings.Contains(got, bobs) {
		t.Errorf("another user has %q", got)
	}
}

// bothDone is a context that has ended when the shell has told of its command: who
// waits for either finds both.
type bothDone struct {
	context.Context //nolint:containedctx // it is one

	shell *living
}

// Done implements [context.Context].
func (b bothDone) Done() <-chan struct{} {
	b.shell.ended <- <-b.shell.ended
	return b.Context.Done()
}

// A command that ends exactly at its deadline has ended, and its shell lives on.
func TestEndsAtTheDeadline(t *testing.T) {
	set := defaults()
	shell, err := startLiving(t.Context(), &program{settings: &set})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		shell.stop()
		<-shell.process.Done()
	}()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for n := range 20 {
		got, err := shell.run(bothDone{ended, shell}, order{id: fmt.Sprint("order", n), text: "exit_code() { return 7; }; exit_code", stdin: "/dev/null"}, tool.KiB, func(proc.Stream, []byte) {})
		if err != nil || got.lost || got.ExitCode != 7 {
			t.Fatalf("command %d: %+v, %v; want exit code 7", n, got, err)
		}
	}
}

// A client without a session, whom the host cannot tell from others, gets no job and no
// shell that keeps its state.
func TestNoSession(t *testing.T) {
	o := newOwners()
	for _, user := range []string{"", "ann"} {
		if got := o.refuse(owner{user, ""}); got == nil || got.Code != tool.Unavailable || got.Hint == "" {
			t.Errorf("the user %q without a session is refused with %v, want a reason and what to do", user, got)
		}
	}
	if got := o.refuse(owner{"ann", "s1"}); got != nil {
		t.Errorf("control: a session is refused with %v", got)
	}
}
