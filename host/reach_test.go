package main

import "testing"

func TestCommandToPaste(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		app  app
		want string
	}{
		{"found by its name", app{program: "toolhost"}, "toolhost tools"},
		{"called by a path, with a configuration", app{program: "bin/toolhost", configPath: "/etc/toolhost/"}, "bin/toolhost tools --config /etc/toolhost/"},
		{"words that a shell would change", app{program: "my host", configPath: "it's $here"}, `'my host' tools --config 'it'\''s $here'`},
		{"nothing that moves the cursor", app{configPath: "a\x1b[2Kb"}, `toolhost tools --config 'a\x1b[2Kb'`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.app.command("tools"); got != tt.want {
				t.Errorf("command = %s, want %s", got, tt.want)
			}
		})
	}
}
