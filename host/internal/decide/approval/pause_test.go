package approval_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// plugin is a plugin whose program and tools a test changes.
type plugin struct{ now catalog.Basis }

func (p *plugin) basis(string) catalog.Basis { return p.now }

// edited returns the plugin after a change.
func (p *plugin) edited(program string, name, field, value string) catalog.Basis {
	tools := map[string]catalog.Terms{
		"put": {Schema: "s1", Tier: "side_effecting", Description: "d"}, "get": {Schema: "s2", Tier: "read_only", Description: "d"},
	}
	terms := tools[name]
	switch field {
	case "schema":
		terms.Schema = value
	case "tier":
		terms.Tier = value
	case "description":
		terms.Description = value
	case "gone":
		delete(tools, name)
		return catalog.Basis{Program: program, Tools: tools}
	}
	if name != "" {
		tools[name] = terms
	}
	return catalog.Basis{Program: program, Tools: tools}
}

// call returns a call by ada for the current plugin.
func (p *plugin) call() approval.Call {
	return approval.Call{User: "ada", Session: session, Plugin: "p", Tool: "put", Basis: p.now}
}

// give gives ada a grant for calls of put, or for the whole plugin.
func (r *rig) give(t *testing.T, p *plugin, terms approval.Terms) string {
	t.Helper()
	q := question(`{}`)
	q.Given = p.now
	record := r.ask(t, q)
	got, err := r.service.Decide(t.Context(), r.seeing(t, approval.Decision{ID: record.ID, By: approver("ada"), Approve: true, Grant: &terms}))
	if err != nil || len(got.Grants) != 1 {
		t.Fatalf("Decide = %+v, %v", got.Grants, err)
	}
	if err := r.service.Spend(t.Context(), record.ID, "tc_1", q.Binding()); err != nil {
		t.Fatal(err)
	}
	return got.Grants[0].ID
}

// listed returns a grant as ada sees it.
func (r *rig) listed(t *testing.T, id string) approval.Grant {
	t.Helper()
	all, err := r.grants.List(t.Context(), approver("ada"), false)
	i := slices.IndexFunc(all, func(g approval.Grant) bool { return g.ID == id })
	if err != nil || i < 0 {
		t.Fatalf("grant %s is not listed: %+v, %v", id, all, err)
	}
	return all[i]
}

func TestGrantIsPaused(t *testing.T) {
	for _, tt := range []struct {
		name           string
		program        string
		tool, field    string
		value          string
		ofTool, ofWide string // why, "" if it is still in force
	}{
		{name: "nothing", program: "1"},
		{"the program", "2", "", "", "", "the program of the plugin has changed", "the program of the plugin has changed"},
		{"its schema", "1", "put", "schema", "s3", "tool put: schema changed", "tool put: schema changed"},
		{"its tier", "1", "put", "tier", "privileged", "tool put: tier side_effecting -> privileged", "tool put: tier side_effecting -> privileged"},
		{"its description", "1", "put", "description", "d2", "", ""},
		{"another tool", "1", "get", "tier", "side_effecting", "", "tool get: tier read_only -> side_effecting"},
		{"a new tool", "1", "new", "schema", "s4", "", "tool new: new"},
		{"another tool that is gone", "1", "get", "gone", "", "", "tool get: gone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, of := range []struct {
				terms approval.Terms
				want  string
			}{{approval.Terms{}, tt.ofTool}, {approval.Terms{Plugin: true}, tt.ofWide}} {
				p, dir := &plugin{}, t.TempDir()
				p.now = p.edited("1", "", "", "")
				r := open(t, dir, approval.Options{}, p.basis)
				id := r.give(t, p, of.terms)
				call := p.call()
				if got := r.grants.Covering(&call); !slices.Equal(got, []string{id}) {
					t.Fatalf("control: Covering = %v, want %s", got, id)
				}
				p.now = p.edited(tt.program, tt.tool, tt.field, tt.value)
				call = p.call()
				got := strings.Join(r.grants.Covering(&call), ",")
				if of.want == "" {
					if g := r.listed(t, id); got != id || g.State != approval.GrantActive || g.Paused != nil {
						t.Errorf("%+v: Covering = %q and %+v, want that the grant holds", of.terms, got, g)
					}
					continue
				}
				wantPaused := []approval.PausedGrant{{ID: id, Changes: []string{of.want}}}
				if diff := cmp.Diff(wantPaused, call.Paused); got != "" || diff != "" {
					t.Errorf("%+v: Covering = %q, paused (-want +got):\n%s", of.terms, got, diff)
				}
				if g := r.listed(t, id); g.State != approval.GrantPaused || g.Paused == nil || !slices.Equal(g.Paused.Changes, []string{of.want}) {
					t.Errorf("%+v: the list says %s, %+v; want paused, %q", of.terms, g.State, g.Paused, of.want)
				}
				// A grant that is given now does not confirm the old one.
				if again := r.give(t, p, of.terms); again == id {
					t.Errorf("%+v: the new answer is grant %s, which is paused", of.terms, again)
				}
			}
		})
	}
}

func TestConfirm(t *testing.T) {
	p, dir := &plugin{}, t.TempDir()
	p.now = p.edited("1", "", "", "")
	r := open(t, dir, approval.Options{}, p.basis)
	id := r.give(t, p, approval.Terms{})
	covered := func() bool {
		call := p.call()
		return len(r.grants.Covering(&call)) == 1
	}
	confirm := func(id, basis string, by auth.Caller) tool.Code {
		_, err := r.grants.Confirm(t.Context(), id, basis, by)
		return code(err)
	}
	if got := confirm(id, "", approver("ada")); got != tool.Conflict {
		t.Errorf("Confirm of a grant that holds = %q, want %s", got, tool.Conflict)
	}
	p.now = p.edited("2", "", "", "")
	basis := r.listed(t, id).Paused.Basis
	for _, tt := range []struct {
		name, id, basis string
		by              auth.Caller
		want            tool.Code
	}{
		{"an agent", id, basis, auth.Caller{User: "ada", Roles: auth.Agent | auth.Approver}, tool.PermissionDenied},
		{"an admin", id, basis, auth.Caller{User: "ada", Roles: auth.Admin}, tool.PermissionDenied},
		{"an approver of others", id, basis, auth.Caller{User: "eve", Roles: auth.Approver | auth.Admin}, tool.NotFound},
		{"none with this id", "gr_0", basis, approver("ada"), tool.NotFound},
		{"without what was seen", id, "", approver("ada"), tool.InvalidArgument},
		{"for something else", id, "sha256:0", approver("ada"), tool.Conflict},
	} {
		if got := confirm(tt.id, tt.basis, tt.by); got != tt.want || covered() {
			t.Errorf("Confirm by %s = %q, covered: %t; want %s", tt.name, got, covered(), tt.want)
		}
	}
	p.now = p.edited("3", "", "", "") // after it was shown
	if got := confirm(id, basis, approver("ada")); got != tool.Conflict || covered() {
		t.Errorf("Confirm of what has changed since = %q, want %s", got, tool.Conflict)
	}
	p.now = p.edited("3", "put", "gone", "")
	if g := r.listed(t, id); g.State != approval.GrantPaused || g.Paused.Basis != "" || confirm(id, "", approver("ada")) != tool.Conflict {
		t.Errorf("the grant of a tool that is gone is %s, %+v; want paused, and that nobody can confirm it", g.State, g.Paused)
	}
	p.now = p.edited("2", "", "", "")
	if got := confirm(id, basis, approver("ada")); got != "" || !covered() {
		t.Errorf("Confirm = %q, covered: %t; want that the grant holds", got, covered())
	}
	r.close(t)
	r = open(t, dir, approval.Options{}, p.basis)
	if g := r.listed(t, id); !covered() || g.Given.Program != "2" || g.ConfirmedBy != "ada" || g.Confirmed.IsZero() {
		t.Errorf("after a restart the grant is %+v, covered: %t; want that it holds for program 2, confirmed by ada", g, covered())
	}
	p.now = p.edited("4", "", "", "")
	if g, err := r.grants.Revoke(t.Context(), id, approver("ada")); err != nil || g.State != approval.GrantRevoked || g.Paused != nil {
		t.Errorf("Revoke of a paused grant = %+v, %v", g, err)
	}
	if got := confirm(id, p.now.Of("put").Digest(), approver("ada")); got != tool.Conflict {
		t.Errorf("Confirm of a revoked grant = %q, want %s", got, tool.Conflict)
	}
}

// TestGrantWithoutBasis reads a grant as earlier versions wrote them.
func TestGrantWithoutBasis(t *testing.T) {
	p := &plugin{}
	r := open(t, t.TempDir(), approval.Options{}, p.basis)
	id := r.give(t, p, approval.Terms{})
	p.now = p.edited("1", "", "", "")
	call := p.call()
	got := r.grants.Covering(&call)
	if len(got) != 0 || len(call.Paused) != 1 || !strings.Contains(call.Paused[0].Changes[0], "earlier version") {
		t.Errorf("Covering = %v, paused %+v; want paused, by an earlier version", got, call.Paused)
	}
	if _, err := r.grants.Confirm(t.Context(), id, r.listed(t, id).Paused.Basis, approver("ada")); err != nil {
		t.Fatal(err)
	}
	if got := r.grants.Covering(&call); !slices.Equal(got, []string{id}) {
		t.Errorf("once confirmed, Covering = %v, want %s", got, id)
	}
}
