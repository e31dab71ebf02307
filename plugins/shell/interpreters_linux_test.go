package main

import (
	"testing"

	"github.com/toolhost/toolhost/plugins/shell/internal/interpreter"
	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// interpreted executes a command by its tree, all of which may run.
func interpreted(t *testing.T, i *interpreters, c proc.Command, text string) (output string) {
	t.Helper()
	p, socket, rest, err := i.start(t.Context(), c, interpreter.Program{Tree: treeOf(t, text), Environment: c.Env})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	go func() { // ends with the process
		_ = interpreter.Serve(socket, rest, func(tool.Execution) error { return nil })
	}()
	result, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return result.Stdout.String() + result.Stderr.String()
}

// An interpreter that has waited runs the next command with all that is this command's
// own, or makes room for one that can.
func TestInterpreterWaits(t *testing.T) {
	t.Parallel()
	var i interpreters
	defer i.close()
	dir := workspaceOf(t)
	plain := proc.Command{Env: []string{"PATH=/usr/bin:/bin"}}
	apart := &proc.Rules{Execute: []string{"/"}, Write: []string{"/"}, Devices: []string{"/"}, Optional: true}
	home := &proc.Rules{Execute: []string{"/"}, Write: []string{dir}, Devices: []string{"/dev"}, Optional: true}
	own := proc.Command{Dir: dir, Env: []string{"PATH=/usr/bin:/bin", "A=1", "A=2"}, Stdin: []byte("input\n"), Merge: true}
	for _, tt := range []struct {
		name  string
		c     proc.Command
		taken bool // the one that waits is, and not another
		waits bool // the next one does
	}{
		{"the first", plain, false, true},
		{"another's directory, environment and input", own, true, true},
		{"other limits", proc.Command{Env: plain.Env, Limits: proc.Limits{OpenFiles: 99}}, false, true},
		{"other rules", proc.Command{Env: plain.Env, Rules: apart}, false, true},
		{"the same rules", proc.Command{Env: plain.Env, Rules: apart}, true, true},
		{"rules that commands can change", proc.Command{Env: plain.Env, Rules: home}, false, false},
	} {
		before := i.next
		c := tt.c
		if c.Dir == "" {
			c.Dir = "/"
		}
		text := `read -r line; echo "$A $line"; pwd; sh -c 'echo $A; ulimit -n' >&2`
		got := interpreted(t, &i, c, text)
		want := " \n" + c.Dir + "\n\n1024\n"
		switch {
		case c.Merge:
			want = "2 input\n" + c.Dir + "\n2\n1024\n"
		case c.Limits.OpenFiles > 0:
			want = " \n" + c.Dir + "\n\n99\n"
		}
		if got != want {
			t.Errorf("%s: wrote %q, want %q", tt.name, got, want)
		}
		if taken := before != nil && i.next != before; taken != tt.taken {
			t.Errorf("%s: has taken the one that waits: %t, want %t", tt.name, taken, tt.taken)
		}
		i.prepare(c)
		i.preparing.Wait()
		if waits := i.next != nil && i.next.program.Fits(interpreting(c)); waits != tt.waits {
			t.Errorf("%s: one waits for the next such command: %t, want %t", tt.name, waits, tt.waits)
		}
	}
}

// A command does not need the interpreter that has waited: something may have killed it.
func TestInterpreterIsLost(t *testing.T) {
	t.Parallel()
	var i interpreters
	defer i.close()
	c := proc.Command{Env: []string{"A=1"}}
	i.prepare(c)
	i.preparing.Wait()
	i.next.program.Close()
	if got := interpreted(t, &i, c, "echo $A"); got != "1\n" {
		t.Errorf("wrote %q, want 1", got)
	}
}
