package killswitch_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/decide/killswitch"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestScope(t *testing.T) {
	t.Parallel()
	type scope = killswitch.Scope
	for _, tt := range []struct {
		scope  scope
		covers string // of "ann/fs ann/git bob/fs /fs"; "" is the user of a process of all users
		text   string
	}{
		{scope{}, "ann/fs ann/git bob/fs /fs", "all calls"},
		{scope{User: "ann"}, "ann/fs ann/git", "all calls of the user ann"},
		{scope{Plugin: "fs"}, "ann/fs bob/fs /fs", "all calls to the plugin fs"},
		{scope{User: "ann", Plugin: "fs"}, "ann/fs", "all calls of the user ann to the plugin fs"},
		{scope{User: "it's me"}, "", "all calls of the user it's me"},
	} {
		var covers []string
		for _, call := range []string{"ann/fs", "ann/git", "bob/fs", "/fs"} {
			if user, plugin, _ := strings.Cut(call, "/"); tt.scope.Covers(user, plugin) {
				covers = append(covers, call)
			}
		}
		if got := strings.Join(covers, " "); got != tt.covers {
			t.Errorf("%+v covers %q, want %q", tt.scope, got, tt.covers)
		}
		if text := tt.scope.String(); text != tt.text {
			t.Errorf("%+v is %q, want %q", tt.scope, text, tt.text)
		}
	}
}

func open(t *testing.T, dir string) (*killswitch.Switch, *store.Store) {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s, err := killswitch.New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return s, db
}

func set(t *testing.T, s *killswitch.Switch, scope killswitch.Scope) (stop killswitch.Stop, fresh bool) {
	t.Helper()
	stop, fresh, err := s.Set(scope, "why", "root")
	if err != nil {
		t.Fatalf("Set(%+v) = %v", scope, err)
	}
	return stop, fresh
}

// TestSwitch has several stops at the same time, of which one is not saved.
func TestSwitch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, db := open(t, dir)
	if stop, ok := s.Covering("ann", "fs"); ok || len(s.List()) > 0 {
		t.Errorf("a new switch has %+v", stop)
	}
	user, _ := set(t, s, killswitch.Scope{User: "ann"})
	plugin, _ := set(t, s, killswitch.Scope{Plugin: "fs"})
	set(t, s, killswitch.Scope{User: "lost"})
	for _, stop := range []killswitch.Stop{user, plugin, user} { // saving again changes nothing
		if err := s.Save(t.Context(), stop.ID); err != nil {
			t.Fatal(err)
		}
	}
	if again, fresh := set(t, s, killswitch.Scope{User: "ann"}); fresh || again != user {
		t.Errorf("the same stop again is %+v, want %+v", again, user)
	}
	if stop, ok := s.Covering("ann", "fs"); !ok || stop != user {
		t.Errorf("the call is covered by %+v, want the oldest, %+v", stop, user)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	s, db = open(t, dir)
	if diff := cmp.Diff([]killswitch.Stop{user, plugin}, s.List()); diff != "" {
		t.Errorf("the next host has other stops (-want +got):\n%s", diff)
	}
	if ended, err := s.Resume(t.Context(), user.ID); err != nil || ended != user {
		t.Errorf("Resume() = %+v, %v", ended, err)
	}
	if stop, ok := s.Covering("ann", "fs"); !ok || stop != plugin {
		t.Errorf("the call is covered by %+v, want %+v", stop, plugin)
	}
	if _, err := s.Resume(t.Context(), user.ID); tool.AsError(err).Code != tool.NotFound {
		t.Errorf("Resume() again = %v", err)
	}
	if err := s.Save(t.Context(), user.ID); err != nil { // it has ended meanwhile
		t.Errorf("Save() of an ended stop = %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s, db = open(t, dir)
	defer db.Close()
	if diff := cmp.Diff([]killswitch.Stop{plugin}, s.List()); diff != "" {
		t.Errorf("the third host has other stops (-want +got):\n%s", diff)
	}
}

func TestSetRefuses(t *testing.T) {
	t.Parallel()
	s, db := open(t, t.TempDir())
	defer db.Close()
	for _, tt := range []struct {
		scope  killswitch.Scope
		reason string
		want   string
	}{
		{killswitch.Scope{User: "a\nb"}, "", "the user of the stop cannot be shown"},
		{killswitch.Scope{Plugin: strings.Repeat("x", 201)}, "", "the plugin of the stop cannot be shown"},
		{killswitch.Scope{}, "two\nlines", "the reason of the stop cannot be shown"},
		{killswitch.Scope{}, strings.Repeat("x", killswitch.MaxReason+1), "expected at most 500 bytes"},
	} {
		if _, _, err := s.Set(tt.scope, tt.reason, "root"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Set(%+v, %.20q) = %v, want %s", tt.scope, tt.reason, err, tt.want)
		}
	}
	if n := len(s.List()); n > 0 {
		t.Errorf("%d refused stops are in force", n)
	}
	for i := range 1000 {
		set(t, s, killswitch.Scope{User: strings.Repeat("x", i/26) + string(rune('a'+i%26))})
	}
	if _, _, err := s.Set(killswitch.Scope{User: "one more"}, "", "root"); tool.AsError(err).Code != tool.ResourceExhausted {
		t.Errorf("the 1001st stop = %v", err)
	}
}
