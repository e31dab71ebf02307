package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// What would hold up, flood or leave something of a program that waits for its
// command without care.
func TestBadCommands(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup // they wait more than they work
	defer all.Wait()
	for _, backend := range []string{backendHost, backendSession} {
		for _, tt := range []struct {
			name, command, want string
			code                tool.Code
		}{
			{"it reads the terminal, which is not there", "read -r x </dev/tty || echo none", "none\n", ""},
			{"a child holds the outputs", "(setsid sleep 1000 &); echo done", "done\n", ""},
			{"it closes everything", "exec 0<&- 1>&- 2>&-; sleep 0.01; exit 0", "", ""},
			{"it writes without end", "yes", "y\ny\n", tool.Timeout},
			{"it writes one line without end", "tr '\\0' x </dev/zero", "xxx", tool.Timeout},
			{"it ignores what it can", "trap '' TERM INT HUP QUIT; while :; do :; done", "", tool.Timeout},
			{"it stops itself", "kill -STOP $$", "", tool.Timeout},
			{"its directory is gone", "mkdir d; cd d; rmdir $PWD; pwd -P || echo none", "none\n", ""},
			{"a command of 1 MB", "echo " + strings.Repeat("x ", 500_000) + "| wc -w", "500000\n", ""},
			{"it ends its reaper", "kill -9 $PPID; sleep 1000", "", tool.Failed},
		} {
			all.Go(func() {
				t.Run(backend+"/"+tt.name, func(t *testing.T) {
					// The reaper is out of reach of a command that is kept apart.
					p, _ := startShell(t, map[string]any{"backend": backend, "apart": !strings.Contains(tt.command, "PPID")})
					args := map[string]any{"command": tt.command}
					if tt.code == tool.Timeout {
						args["timeout"] = 1
					}
					got := p.Call(t.Context(), "shell_exec", args)
					if tt.code == tool.Timeout && got.Text() == "" && tt.want != "" { // it had no time to begin
						args["timeout"] = 30
						got = p.Call(t.Context(), "shell_exec", args)
					}
					if !strings.Contains(got.Text(), tt.want) {
						t.Errorf("the text is %.200q, want %q in it", got.Text(), tt.want)
					}
					if got.Error == nil && tt.code != "" || got.Error != nil && got.Error.Code != tt.code {
						t.Errorf("the error is %v, want %q", got.Error, tt.code)
					}
					if again := p.Call(t.Context(), "shell_exec", map[string]any{"command": "echo well"}); again.Text() != "well\n" {
						t.Errorf("the next command: %q, %v", again.Text(), again.Error)
					}
				})
			})
		}
	}
}

// A fork bomb meets the limit of processes that commands have and is killed
// whole; the plugin, which has the same account, goes on with its other jobs.
// Root has no such limit: an ordinary user runs this, one without other processes,
// which would count.
func TestForkBomb(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Parallel()
		asUser(t, 60_000+uint32(os.Getpid())%5_000, "^TestForkBomb$", "TestForkBomb")
		return
	}
	options := shellOptions(nil)
	options.Limits.Processes = 300
	p := sdktest.StartBinary(t, os.Args[0], options)
	job := startJobOf(t, p, map[string]any{"command": "sleep 1000"})
	m := newMark()
	ended := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		defer close(ended)
		got := p.Call(t.Context(), "shell_exec", map[string]any{"command": "bomb() { bomb | bomb & }; bomb; sleep 1000 # " + string(m), "timeout": 1})
		if got.Error == nil || got.Error.Code != tool.Timeout {
			t.Errorf("the command ends with %v", got.Error)
		}
	})
	for range 8 {
		all.Go(func() {
			for over := false; !over; {
				if got := p.Call(t.Context(), "shell_exec", map[string]any{"command": "echo well"}); got.Text() != "well\n" {
					t.Errorf("a command beside it: %q, %v", got.Text(), got.Error)
				}
				select {
				case <-ended:
					over = true
				default:
				}
			}
		})
	}
	all.Wait()
	left := func() int {
		n := 0
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, file := range files {
			if line, _ := os.ReadFile(file); bytes.Contains(line, []byte(m)) {
				n++
			}
		}
		return n
	}
	for tick, end := time.Tick(5*time.Millisecond), time.After(patience); left() > 0; {
		select {
		case <-tick:
		case <-end:
			t.Fatalf("%d processes are left", left())
		}
	}
	if again := p.Call(t.Context(), "shell_exec", map[string]any{"command": "echo well"}); again.Text() != "well\n" {
		t.Errorf("the next command: %q, %v", again.Text(), again.Error)
	}
	if list := p.Call(t.Context(), "process_list", map[string]any{}); !strings.HasPrefix(list.Text(), job+"  running  ") {
		t.Errorf("the job that ran beside it: %q", list.Text())
	}
}

// The memory of the plugin does not grow with what a command, a job or the shell
// of a session writes: several times as much as any buffer, and as the bound.
// What is streamed ends, and what is written is counted.
func TestMemoryIsFlat(t *testing.T) {
	const size = 300_000_000 // more than is streamed
	const bound = 64 << 10   // KiB
	command := fmt.Sprintf("head -c %d /dev/zero", size)
	day := soak.Seed(t)
	for i, backend := range []string{backendHost, backendSession} {
		if !soak.Today(day, i, 2) {
			continue
		}
		p := sdktest.StartBinary(t, os.Args[0], shellOptions(map[string]any{"backend": backend}))
		peak := func() int {
			t.Helper()
			id := startJobOf(t, p, map[string]any{"command": "grep VmHWM /proc/$(awk '/PPid/{print $2}' /proc/$PPID/status)/status"})
			var kib int
			if text := outputOf(t, p, id, ""); !strings.HasPrefix(text, "VmHWM:") {
				t.Fatal(text)
			} else if _, err := fmt.Sscanf(text, "VmHWM: %d kB", &kib); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			return kib
		}
		before := peak()
		streamed := 0
		got := p.Run(t.Context(), tool.Call{Tool: "shell_exec", Arguments: asJSON(t, map[string]any{"command": command, "timeout": 300})}, tool.Sink{
			Chunk: func(c tool.Chunk) { streamed += len(c.Data) },
		})
		if facts := structured(t, got); got.Error != nil || facts.StdoutBytes != size {
			t.Fatalf("%+v, %v", facts, got.Error)
		}
		if most := int(maxStreamed); streamed > most || streamed < most-(1<<20) {
			t.Errorf("%s: %d bytes are streamed of %d, want nearly %d", backend, streamed, size, most)
		}
		if grown := peak() - before; grown > bound {
			t.Errorf("%s: the plugin has grown by %d KiB with a command's %d bytes of output", backend, grown, size)
		}
		id := startJobOf(t, p, map[string]any{"command": command})
		for over := false; !over; {
			over = p.Call(t.Context(), "process_output", map[string]any{"job": id, "cursor": size, "wait": 300}).Metadata["running"] == false
		}
		if grown := peak() - before; grown > bound {
			t.Errorf("%s: the plugin has grown by %d KiB with a job's %d bytes of output", backend, grown, size)
		}
	}
}

// The limits of the settings hold for each process of a command, and whoever
// meets one is told which.
func TestLimits(t *testing.T) {
	p, _ := startShell(t, map[string]any{"limits": map[string]any{
		"cpu_time": "1s", "file_size": "64KiB", "open_files": 20, "memory": "64MiB", "processes": 4000,
	}})
	for _, tt := range []struct{ command, text, hint string }{
		{"ulimit -t; ulimit -f; ulimit -n; ulimit -d; ulimit -u", "1\n64\n20\n65536\n4000\n", ""},
		{"exec head -c 100000 /dev/zero >file", "", "exceeded the limit on file size"},
		{"while :; do :; done", "", "exceeded the limit on processor time"},
	} {
		got := p.Call(t.Context(), "shell_exec", map[string]any{"command": tt.command})
		if got.Text() != tt.text {
			t.Errorf("%s: %q, want %q", tt.command, got.Text(), tt.text)
		}
		if tt.hint != "" && (got.Error == nil || !strings.Contains(got.Error.Hint, tt.hint)) {
			t.Errorf("%s: %v (%+v), want the hint %q", tt.command, got.Error, got.Error, tt.hint)
		}
	}
}

// Commands may be held to fewer files than the plugin may use.
func TestRules(t *testing.T) {
	outside := workspaceOf(t)
	if err := os.WriteFile(filepath.Join(outside, "file"), []byte("outside\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		set  map[string]any
		want string
	}{
		{map[string]any{}, "read\nwritten\nhome\n"},
		{map[string]any{"exec": []string{"system"}, "write": []string{"workspace", "home", "tmp"}}, "home\n"},
		{map[string]any{"exec": []string{"system"}, "read": []string{outside}, "write": []string{"workspace", "home", "tmp"}}, "read\nhome\n"},
		{map[string]any{"exec": []string{"system"}, "write": []string{outside, "workspace", "home", "tmp"}}, "read\nwritten\nhome\n"},
		{map[string]any{"exec": []string{"system"}, "write": []string{outside}}, "read\nwritten\n"},
	} {
		p, _ := startShell(t, tt.set)
		got := p.Call(t.Context(), "shell_exec", map[string]any{
			"command": "{ cat " + outside + "/file >/dev/null && echo read; echo x >" + outside + "/new && echo written; echo x >$HOME/x && echo home; } 2>/dev/null; true",
			"cwd":     "/",
		})
		if got.Text() != tt.want || got.Error != nil {
			t.Errorf("with %v a command does %q, %v, want %q", tt.set, got.Text(), got.Error, tt.want)
		}
	}
}
