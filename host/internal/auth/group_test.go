package auth

import (
	"slices"
	"strings"
	"testing"
)

// TestJoin: a user of several groups has the tools of all their toolsets and the widest limits, never
// more than the credential allows.
func TestJoin(t *testing.T) {
	t.Parallel()
	readers, files := Toolset{Name: "readers", Tools: []string{"read_*"}}, Toolset{Name: "files", Tools: []string{"*_file"}}
	groups := Groups{
		{Name: "all", Users: []string{Everyone}, Limits: Limits{ConcurrentCalls: 4}},
		{Name: "reading", Users: []string{"ada", "bob"}, Toolset: &readers, Limits: Limits{ActionsPerHour: 10, Results: 20}},
		{Name: "writing", Users: []string{"ada"}, Toolset: &files, Limits: Limits{ActionsPerHour: 20, ConcurrentCalls: 2, Results: 30, NetworkPerDay: 50}},
		{Name: "ops", Limits: Limits{ActionsPerHour: -1, NetworkPerDay: 40}},
	}
	for _, tt := range []struct {
		name   string
		caller Caller
		groups []string
		limits Limits
		tools  string // of those below
	}{
		{"of no group", Caller{User: "eve"}, []string{"all"}, Limits{ConcurrentCalls: 4}, "read_file write_file read_lines shell_exec"},
		{"of one", Caller{User: "bob"}, []string{"all", "reading"}, Limits{10, 4, 20, 0}, "read_file read_lines"},
		{"of two", Caller{User: "ada"}, []string{"all", "reading", "writing"}, Limits{20, 4, 30, 50}, "read_file write_file read_lines"},
		{"of two, with a toolset", Caller{User: "ada"}.Within(files), []string{"all", "reading", "writing"}, Limits{20, 4, 30, 50}, "read_file write_file"},
		{"by the credential", Caller{User: "eve", Groups: []string{"reading", "ops", "gone"}}, []string{"all", "reading", "ops"}, Limits{-1, 4, 20, 40}, "read_file read_lines"},
	} {
		got := groups.Join(tt.caller)
		var tools strings.Builder
		for _, name := range []string{"read_file", "write_file", "read_lines", "shell_exec"} {
			if got.MayUse(name) {
				tools.WriteString(" " + name)
			}
		}
		if !slices.Equal(got.Groups, tt.groups) || got.Limits != tt.limits || tools.String() != " "+tt.tools {
			t.Errorf("%s: groups %v, limits %+v, tools%s, want %v, %+v, %s", tt.name, got.Groups, got.Limits, tools.String(), tt.groups, tt.limits, tt.tools)
		}
	}
	if len(readers.Tools) != 1 {
		t.Errorf("the toolset of a group has become %v", readers.Tools)
	}
}
