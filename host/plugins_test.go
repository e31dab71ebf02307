package main

import (
	"testing"
	"time"

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
