package approval_test

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/sdk/tool"
)

// commands are the commands of a line, as the policy hands them on.
func commands(tb testing.TB, line string) []approval.Command {
	tb.Helper()
	read := command.Parse(line, command.Options{Workspace: "/w"})
	if len(read.Problems) > 0 {
		tb.Fatalf("%q: %v", line, read.Problems)
	}
	var all []approval.Command
	for _, s := range read.Segments {
		if !s.Maybe && !s.Transparent {
			all = append(all, approval.Command{Words: s.Words, Least: s.Least})
		}
	}
	return all
}

// grant answers a question about a subject with terms.
func (r *rig) grant(tb testing.TB, about approval.Subject, terms approval.Terms) (approval.Record, error) {
	tb.Helper()
	q := question(fmt.Sprintf(`{"n":%q}`, rand.Text())) // each is another call
	q.Subject = about
	record := r.ask(tb, q)
	got, err := r.service.Decide(tb.Context(), r.seeing(tb, approval.Decision{ID: record.ID, By: approver("ada"), Approve: true, Grant: &terms}))
	if err != nil {
		if _, err := r.service.Decide(tb.Context(), r.seeing(tb, approval.Decision{ID: record.ID, By: approver("ada")})); err != nil {
			tb.Fatalf("a refused grant leaves no open record: %v", err)
		}
	}
	return got, err
}

func TestCoveredPaths(t *testing.T) {
	for _, tt := range []struct {
		grant  string
		asked  []string
		covers []string // a call on all of them
		want   bool
	}{
		{"/a/b", []string{"/a/b/x"}, []string{"/a/b"}, true},
		{"/a/b", []string{"/a/b/x"}, []string{"/a/b/c/d"}, true},
		{"/a/b", []string{"/a/b/x"}, []string{"/a/bc"}, false},
		{"/a/b", []string{"/a/b/x"}, []string{"/a/bc/d"}, false},
		{"/a/b", []string{"/a/b/x"}, []string{"/a"}, false},
		{"/a/b", []string{"/a/b/x"}, []string{"/"}, false},
		{"/a/b", []string{"/a/b/x"}, nil, false},
		{"/a/b", []string{"/a/b/x"}, []string{"/a/b/x", "/c"}, false},
		{"/a/b", []string{"/a/b/x"}, []string{"/c", "/a/b/x"}, false},
		{"/a/b", []string{"/a/b/x"}, []string{"/a/b/y", "/a/b/z"}, true},
		{"/", []string{"/a"}, []string{"/c"}, true},
		{"/", []string{"/a"}, nil, false},
		{"b", []string{"/w/b/x"}, []string{"/w/b/y"}, true},
		{"b/", []string{"/w/b/x"}, []string{"/w/bc"}, false},
		{"./b/../c", []string{"/w/c"}, []string{"/w/c/x"}, true},
		{".", []string{"/w/c"}, []string{"/w/d"}, true},
		{"", []string{"/w/c"}, nil, true},
	} {
		t.Run(tt.grant+" "+strings.Join(tt.covers, " "), func(t *testing.T) {
			r := open(t, t.TempDir(), approval.Options{})
			if _, err := r.grant(t, approval.Subject{Folder: "/w", Paths: tt.asked}, approval.Terms{Path: tt.grant}); err != nil {
				t.Fatal(err)
			}
			call := approval.Call{User: "ada", Plugin: "p", Tool: "put", Session: "s2", Subject: approval.Subject{Folder: "/w", Paths: tt.covers}}
			if got := len(r.grants.Covering(&call)) == 1; got != tt.want {
				t.Errorf("covered: %t, want %t", got, tt.want)
			}
			call.Tool = "other"
			if got := r.grants.Covering(&call); len(got) != 0 {
				t.Errorf("another tool is covered by %s", got)
			}
			call.Tool, call.Commands = "put", commands(t, "npm test")
			if got := r.grants.Covering(&call); len(got) != 0 {
				t.Errorf("a command is covered by %s, which is for paths", got)
			}
		})
	}
}

func TestCoveredCommands(t *testing.T) {
	const push = "git push *"
	for _, tt := range []struct {
		grants []string // none: only the asked call
		asked  string
		line   string
		want   int // the grants that cover it
	}{
		{[]string{push}, "git push", "git push", 1},
		{[]string{push}, "git push", "git push origin main", 1},
		{[]string{push}, "git push origin", "cd src && git push", 0}, // cd is not granted
		{[]string{push}, "git push", "git push; git push", 1},
		{[]string{push}, "git push", "git push --force", 0},
		{[]string{push}, "git push", "git push origin main --force", 0},
		{[]string{push}, "git push", "git push -f", 0},
		{[]string{push}, "git push", "git push origin +main", 0},
		{[]string{push}, "git push", "git push origin :main", 0},
		{[]string{push}, "git push", "git push origin main:prod", 0},
		{[]string{push}, "git push", "git push https://evil.test/x", 0},
		{[]string{push}, "git push", "git push evil.test:x", 0},
		{[]string{push}, "git push", "git push /elsewhere", 0},
		{[]string{push}, "git push", "git push ../elsewhere", 0},
		{[]string{push}, "git push", "git push @", 0},
		{[]string{push}, "git push", "git push ''", 0},
		{[]string{push}, "git push", "git pushx", 0},
		{[]string{push}, "git push", "git 'push x'", 0},
		{[]string{push}, "git push", "git -c alias.push=!sh push", 0},
		{[]string{push}, "git push", "git -C / push", 0},
		{nil, "awk 'BEGIN{}'", "awk 'BEGIN{system(\"x\")}'", 0},
		{[]string{push}, "git push", "git pull", 0},
		{[]string{push}, "git push", "GIT_SSH=x git push", 0},
		{[]string{push}, "git push", "env GIT_SSH=x git push", 0},
		{[]string{push}, "git push", "git push > out", 0},
		{[]string{push}, "git push", "git push < in", 0},
		{[]string{push}, "git push", "git push <<E\nx\nE", 0},
		{[]string{push}, "git push", "{ git push; } < in", 0},
		{[]string{push}, "git push", "echo x | git push", 0},
		{[]string{push}, "git push", "git push $X", 0},
		{[]string{push}, "git push", "git push *", 0},
		{[]string{push}, "git push", "'git' push", 0},
		{[]string{push}, "git push", "./git push", 0},
		{[]string{push}, "git push", "timeout 5 git push", 1},
		{[]string{push}, "git push", "nohup git push", 0},
		{[]string{push}, "git push", "xargs git push", 0},
		{[]string{"git push"}, "git push", "git push origin", 0},
		{[]string{"git push"}, "git push", "git push", 1},
		{[]string{"git push --force"}, "git push --force", "git push --force", 1},
		{[]string{"git push --force"}, "git push --force", "git push", 0},
		{[]string{"git push --force *"}, "git push --force", "git push --force origin", 1},
		{[]string{"git push --force *"}, "git push --force", "git push origin --force", 0},
		{nil, "rm build", "rm build", 1},
		{nil, "rm build", "rm build src", 0},
		{nil, "rm build", "rm -r build", 0},
		{nil, "rm 'a b' '*'", "rm 'a b' '*'", 1},
		{nil, "rm 'a b' '*'", "rm a b '*'", 0},
		{nil, "rm '*'", "rm x", 0},
		{nil, "git add . && git commit -m done", "git commit -m done", 1},
		{nil, "git add . && git commit -m done", "git commit -m done; git add .", 2},
		{nil, "git add . && git commit -m done", "git commit -m other; git add .", 0},
		{[]string{"git add *", "git commit -m *"}, "git add . && git commit -m done", "git add src/x && git commit -m 'fix: a = b'", 2},
		{[]string{"git commit -m *"}, "git commit -m x", "git commit -m x --amend", 0},
		{[]string{"git commit -m *"}, "git commit -m x", "git commit -m --amend", 0},
		{nil, "make test", "make test SHELL=/tmp/x", 0},
		{[]string{"npm test *"}, "npm test", "npm test --prefix=/", 0},
		{[]string{"npm run *"}, "npm run a", "npm run b", 1},
		{nil, "sudo make install", "sudo make install", 1},
		{nil, "sudo make install", "sudo make install x", 0},
		{nil, "python3", "echo x | python3", 0},
		{nil, "python3 x.py", "python3 x.py", 1},
		{[]string{"ls *"}, "ls x", "ls -la src", 1}, // known to be harmless
		{[]string{"ls *"}, "ls x", "ls /etc", 0},
	} {
		t.Run(fmt.Sprint(tt.grants, tt.asked, " ", tt.line), func(t *testing.T) {
			r := open(t, t.TempDir(), approval.Options{})
			if _, err := r.grant(t, approval.Subject{Commands: commands(t, tt.asked)}, approval.Terms{Commands: tt.grants}); err != nil {
				t.Fatal(err)
			}
			r.restart(t, approval.Options{})
			call := approval.Call{User: "ada", Plugin: "p", Tool: "put", Subject: approval.Subject{Commands: commands(t, tt.line)}}
			if got := r.grants.Covering(&call); len(got) != tt.want {
				t.Errorf("covered by %s, want %d", got, tt.want)
			}
			call.Commands = nil
			if got := r.grants.Covering(&call); len(got) != 0 {
				t.Errorf("a call without commands is covered by %s", got)
			}
		})
	}
}

func TestTermsThatDoNotFit(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	paths := approval.Subject{Folder: "/w", Paths: []string{"/w/a/x", "/w/b"}}
	runs := approval.Subject{Commands: commands(t, "git push --force; rm x")}
	for _, tt := range []struct {
		name  string
		about approval.Subject
		terms approval.Terms
		says  string
	}{
		{"a path that the call leaves", paths, approval.Terms{Path: "a"}, "would not cover this call, which names /w/b"},
		{"a path for no path", approval.Subject{Folder: "/w"}, approval.Terms{Path: "a"}, "names no path"},
		{"a relative path without a workspace", approval.Subject{Paths: []string{"/x"}}, approval.Terms{Path: "x"}, "use an absolute path"},
		{"a path with a NUL", paths, approval.Terms{Path: "/w\x00"}, "not valid"},
		{"a path that is too long", paths, approval.Terms{Path: "/" + strings.Repeat("a", 4096)}, "longer"},
		{"a command for none", paths, approval.Terms{Commands: []string{"ls"}}, "no shell command"},
		{"a command that is left out", runs, approval.Terms{Commands: []string{"rm *"}}, "also runs git push --force"},
		{"an option that is left out", runs, approval.Terms{Commands: []string{"git push *", "rm *"}}, "A grant for git push * would not cover this call"},
		{"a command that is not there", runs, approval.Terms{Commands: []string{"git push --force", "rm *", "ls"}}, "A grant for ls would not"},
		{"two commands in one", runs, approval.Terms{Commands: []string{"git push --force; rm x"}}, "more than one command"},
		{"a command that is known only when it runs", runs, approval.Terms{Commands: []string{"$X"}}, "known only when it runs"},
		{"a command with a variable", runs, approval.Terms{Commands: []string{"rm $X"}}, "its words must be known"},
		{"a command with output", runs, approval.Terms{Commands: []string{"rm x > y"}}, "redirections"},
		{"no command", runs, approval.Terms{Commands: []string{""}}, "holds no command"},
		{"any command", runs, approval.Terms{Commands: []string{"*"}}, "known only when it runs"},
		{"what is no command", runs, approval.Terms{Commands: []string{"rm 'x"}}, "cannot be parsed"},
		{"an endless command", runs, approval.Terms{Commands: []string{strings.Repeat("x ", 4096)}}, "longer than"},
		{"too many commands", runs, approval.Terms{Commands: slices.Repeat([]string{"ls"}, 33)}, "33 commands"},
		{"no time", paths, approval.Terms{For: -1}, "cannot last"},
		{"years", paths, approval.Terms{For: 9000 * time.Hour}, "at most"},
		{"parts of a millisecond", paths, approval.Terms{For: time.Microsecond}, "whole milliseconds"},
		{"uses below none", paths, approval.Terms{Uses: -1}, "-1 uses"},
		{"too many uses", paths, approval.Terms{Uses: 1_000_001}, "at most"},
	} {
		got, err := r.grant(t, tt.about, tt.terms)
		if code(err) != tool.InvalidArgument || !strings.Contains(err.Error()+tool.AsError(err).Hint, tt.says) {
			t.Errorf("%s: %+v, %v; want %s and %q", tt.name, got.Grants, err, tool.InvalidArgument, tt.says)
		}
	}
	if all, err := r.grants.List(t.Context(), approver("ada"), true); err != nil || len(all) != 0 {
		t.Errorf("grants = %+v, %v; want none", all, err)
	}
	q := question(`{}`)
	q.Session = "a name that a client chose"
	record := r.ask(t, q)
	if got := r.decide(t, approval.Decision{ID: record.ID, By: approver("ada"), Approve: true, Grant: &approval.Terms{Session: true}}); got != tool.InvalidArgument {
		t.Errorf("a grant for no session: %q, want %s", got, tool.InvalidArgument)
	}
}

// covers reports whether a call of ada's in her session is covered.
func (r *rig) covers(name string) bool {
	return len(r.grants.Covering(&approval.Call{User: "ada", Session: session, Plugin: "p", Tool: name})) > 0
}

func TestGrantsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &wall{}
		r := open(t, t.TempDir(), approval.Options{Now: clock.now})
		give := func(terms approval.Terms) {
			t.Helper()
			if _, err := r.grant(t, approval.Subject{}, terms); err != nil {
				t.Fatal(err)
			}
		}
		check := func(when string, want bool, states ...approval.GrantState) {
			t.Helper()
			if got := r.covers("put"); got != want {
				t.Errorf("%s: covered: %t, want %t", when, got, want)
			}
			all, err := r.grants.List(t.Context(), approver("ada"), true)
			if err != nil || len(all) != len(states) {
				t.Fatalf("%s: List = %+v, %v; want %d", when, all, err, len(states))
			}
			active := 0
			for i, g := range all {
				if g.State != states[len(states)-1-i] {
					t.Errorf("%s: grant %d is %s, want %s", when, i, g.State, states[len(states)-1-i])
				}
				if g.State == approval.GrantActive {
					active++
				}
			}
			if some, err := r.grants.List(t.Context(), approver("ada"), false); err != nil || len(some) != active {
				t.Errorf("%s: List of those in force = %+v, %v; want %d", when, some, err, active)
			}
		}
		give(approval.Terms{For: time.Hour})
		wait(59 * time.Minute)
		check("before its end", true, approval.GrantActive)
		r.restart(t, approval.Options{Now: clock.now})
		check("after a restart", true, approval.GrantActive)
		wait(2 * time.Minute)
		check("after its end", false, approval.GrantExpired)

		give(approval.Terms{For: time.Hour})
		clock.set(-24 * time.Hour) // setting the clock back must not extend the grant
		wait(61 * time.Minute)
		if r.covers("put") {
			t.Error("a grant outlives its time since the clock was set back")
		}
		clock.set(0)
		check("after its end", false, approval.GrantExpired, approval.GrantExpired)

		give(approval.Terms{Uses: 2})
		id := r.grants.Covering(&approval.Call{User: "ada", Plugin: "p", Tool: "put"})
		for range 2 {
			check("with uses left", true, approval.GrantExpired, approval.GrantExpired, approval.GrantActive)
			if err := r.grants.Use(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			r.restart(t, approval.Options{Now: clock.now}) // counted on disk
		}
		check("used up", false, approval.GrantExpired, approval.GrantExpired, approval.GrantUsed)
		if err := r.grants.Use(t.Context(), id); code(err) != tool.Conflict {
			t.Errorf("Use without uses = %v, want %s", err, tool.Conflict)
		}

		ended := []approval.GrantState{approval.GrantExpired, approval.GrantExpired, approval.GrantUsed}
		give(approval.Terms{Session: true})
		check("in the session", true, append(ended, approval.GrantActive)...)
		if len(r.grants.Covering(&approval.Call{User: "ada", Session: "s2", Plugin: "p", Tool: "put"})) > 0 {
			t.Error("the grant covers another session")
		}
		r.grants.EndSession("s2")
		check("in the session", true, append(ended, approval.GrantActive)...)
		r.grants.EndSession(session)
		check("after the session", false, append(ended, approval.GrantEnded)...)
		give(approval.Terms{Session: true})
		check("in the next session", true, append(ended, approval.GrantEnded, approval.GrantActive)...)
		r.restart(t, approval.Options{Now: clock.now})
		check("after a restart", false, append(ended, approval.GrantEnded, approval.GrantEnded)...)

		all, err := r.grants.List(t.Context(), approver("ada"), true)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range all {
			if _, err := r.grants.Revoke(t.Context(), g.ID, approver("ada")); code(err) != tool.Conflict || !strings.Contains(err.Error(), string(g.State)) {
				t.Errorf("Revoke of a grant that is %s = %v, want a conflict that says so", g.State, err)
			}
		}
		wait(91 * 24 * time.Hour)
		give(approval.Terms{})
		r.use(t, r.grants.Covering(&approval.Call{User: "ada", Plugin: "p", Tool: "put"})[0])
		wait(time.Minute)
		synctest.Wait()
		check("after 91 days", true, approval.GrantActive)
	})
}

// However many calls arrive at once, a grant of n uses allows n of them.
func TestUsesAreCountedOnce(t *testing.T) {
	const uses, calls = 7, 100
	r := open(t, t.TempDir(), approval.Options{})
	if _, err := r.grant(t, approval.Subject{}, approval.Terms{Uses: uses}); err != nil {
		t.Fatal(err)
	}
	ids := r.grants.Covering(&approval.Call{User: "ada", Plugin: "p", Tool: "put"})
	var ran atomic.Int64
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			switch err := r.grants.Use(t.Context(), ids); {
			case err == nil:
				ran.Add(1)
			case code(err) != tool.Conflict:
				t.Errorf("Use = %v", err)
			}
		})
	}
	all.Wait()
	if got := ran.Load(); got != uses {
		t.Errorf("%d calls ran, want %d", got, uses)
	}
	r.writable(t, false)
	if _, err := r.grants.List(t.Context(), auth.Caller{Roles: auth.Admin}, false); err != nil {
		t.Errorf("List on a full disk = %v", err)
	}
	r.writable(t, true)
	if _, err := r.grant(t, approval.Subject{}, approval.Terms{Uses: 1}); err != nil {
		t.Fatal(err)
	}
	ids = r.grants.Covering(&approval.Call{User: "ada", Plugin: "p", Tool: "put"})
	r.writable(t, false)
	if err := r.grants.Use(t.Context(), ids); code(err) != tool.Unavailable {
		t.Errorf("Use on a full disk = %v, want %s", err, tool.Unavailable)
	}
	r.writable(t, true)
	r.use(t, ids[0])
}

// A grant for a command is for the workspace, unless it names a place.
func TestWhereCommandsRun(t *testing.T) {
	run := func(dir string) approval.Subject {
		return approval.Subject{Folder: "/w", Paths: []string{dir}, Commands: commands(t, "make test")}
	}
	covered := func(r *rig, dir string) bool {
		return len(r.grants.Covering(&approval.Call{User: "ada", Plugin: "p", Tool: "put", Subject: run(dir)})) > 0
	}
	r := open(t, t.TempDir(), approval.Options{})
	if _, err := r.grant(t, run("/elsewhere"), approval.Terms{}); code(err) != tool.InvalidArgument || !strings.Contains(err.Error(), "/elsewhere") {
		t.Errorf("a grant for a command elsewhere: %v, want that it names the place", err)
	}
	if _, err := r.grant(t, run("/w/a"), approval.Terms{}); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{"/w": true, "/w/a": true, "/w/b/c": true, "/": false, "/elsewhere": false, "/wx": false} {
		if got := covered(r, dir); got != want {
			t.Errorf("in %s it is covered: %v, want %v", dir, got, want)
		}
	}
	if _, err := r.grant(t, run("/elsewhere/x"), approval.Terms{Path: "/elsewhere"}); err != nil {
		t.Fatal(err)
	}
	if !covered(r, "/elsewhere/y") || covered(r, "/other") {
		t.Error("a grant that names a place covers another one, or not that")
	}
}

// A grant for a plugin covers all of its tools, and no other plugin's.
func TestGrantForPlugin(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	got, err := r.grant(t, approval.Subject{Folder: "/w", Paths: []string{"/w/x"}}, approval.Terms{Plugin: true, Path: "/w"})
	if err != nil || len(got.Grants) != 1 || got.Grants[0].Covers != "calls of every tool of p, of paths in /w" {
		t.Fatalf("Decide = %+v, %v", got.Grants, err)
	}
	call := approval.Call{User: "ada", Plugin: "p", Tool: "another", Subject: approval.Subject{Paths: []string{"/w/y"}}}
	if len(r.grants.Covering(&call)) != 1 {
		t.Error("another tool of the plugin is not covered")
	}
	call.Plugin = "q"
	if len(r.grants.Covering(&call)) != 0 {
		t.Error("another plugin is covered")
	}
	call.Plugin, call.User = "p", "eve"
	if len(r.grants.Covering(&call)) != 0 {
		t.Error("another user is covered")
	}
}
