package auth

import "testing"

func TestToolsetsLimit(t *testing.T) {
	readers := Toolset{Name: "readers", Tools: []string{"read_*", "git_status"}}
	files := Toolset{Name: "files", Tools: []string{"*_file"}}
	for _, tt := range []struct {
		caller Caller
		tool   string
		want   bool
	}{
		{Caller{}, "shell_exec", true},
		{Caller{}.Within(readers), "read_file", true},
		{Caller{}.Within(readers), "git_status", true},
		{Caller{}.Within(readers), "git_statuses", false},
		{Caller{}.Within(readers).Within(files), "read_file", true},
		{Caller{}.Within(readers).Within(files), "git_status", false},
		{Caller{}.Within(readers).Within(files), "write_file", false},
		{Caller{}.Within(Toolset{Name: "none"}), "read_file", false},
		{Caller{}.Within(Toolset{Name: "broken", Tools: []string{"[a-"}}), "a", false},
	} {
		if got := tt.caller.MayUse(tt.tool); got != tt.want {
			t.Errorf("with %v, MayUse(%s) = %v, want %v", tt.caller.Toolsets, tt.tool, got, tt.want)
		}
	}
	one := Caller{}.Within(readers)
	if _ = one.Within(files); !one.MayUse("git_status") {
		t.Error("Within has changed the caller itself")
	}
}
