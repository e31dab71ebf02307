package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/testprogram"
)

// fenced matches the code blocks of a page, with their language.
var fenced = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// TestReadmeWalkThrough runs the commands in README, in order, with the default configuration,
// and compares the output with README's.
func TestReadmeWalkThrough(t *testing.T) {
	readme := readFile(t, "../README.md")
	dir, port := checkout(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var waiting *terminal // the call that waits for a person
	for _, title := range []string{"Run it", "Approve a call", "Connect an agent"} {
		_, section, ok := strings.Cut(readme, "\n## "+title+"\n")
		if !ok {
			t.Fatalf("README has no section %q", title)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		blocks := fenced.FindAllStringSubmatch(section, -1)
		for i := 0; i < len(blocks); i++ {
			if blocks[i][1] != "sh" {
				t.Fatalf("README, %s: this block stands behind no command:\n%s", title, blocks[i][2])
			}
			typed := newTerminal(t, dir, blocks[i][2])
			if i+1 == len(blocks) || blocks[i+1][1] == "sh" {
				typed.ends(t)
				if place := " " + askedAt(t) + "\n"; strings.Contains(blocks[i][2], "approvals show") && !strings.Contains(typed.printed(), place) {
					t.Errorf("approvals show prints %s, want the place%sin one piece", typed.printed(), place)
				}
				continue
			}
			i++
			typed.prints(t, strings.ReplaceAll(blocks[i][2], "127.0.0.1:7780", "127.0.0.1:"+port))
			if strings.Contains(blocks[i-1][2], "write_file") {
				waiting = typed
			}
		}
	}
	if waiting == nil {
		t.Fatal("README makes no call that waits")
	}
	waiting.ends(t)
	if want := "Wrote 5 bytes to notes.txt"; !strings.Contains(readme, "`"+want+"`") || !strings.Contains(waiting.printed(), want) {
		t.Errorf("after the approval the first terminal has printed %q, want %q, as README says", waiting.printed(), want)
	}
	if got := readFile(t, filepath.Join(dir, "notes.txt")); got != "hello" {
		t.Errorf("notes.txt holds %q", got)
	}
	connectAsPrinted(t, dir)
}

// connectAsPrinted connects clients as `toolhost connect json` prints, with and without
// --http.
func connectAsPrinted(t *testing.T, dir string) {
	t.Helper()
	for _, flag := range []string{"", " --http"} {
		printed := newTerminal(t, dir, "bin/toolhost connect json"+flag)
		printed.ends(t)
		var server struct {
			Command string
			Args    []string
			URL     string
			Headers sent
		}
		decode(t, printed.printed(), &server)
		var transport mcp.Transport = &mcp.CommandTransport{Command: exec.Command(server.Command, server.Args...)}
		if flag != "" {
			transport = &mcp.StreamableClientTransport{Endpoint: server.URL, HTTPClient: &http.Client{Transport: server.Headers}}
		}
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		s, err := client.Connect(t.Context(), transport, nil)
		if err != nil {
			t.Fatalf("toolhost connect json%s: %v", flag, err)
		}
		if got := (&session{s}).must(t, "read_file", map[string]any{"path": "notes.txt"}); got != "hello" {
			t.Errorf("toolhost connect json%s: read_file = %q", flag, got)
		}
		if err := s.Close(); err != nil {
			t.Errorf("toolhost connect json%s: %v", flag, err)
		}
	}
}

// sent are headers that are added to every request.
type sent map[string]string

// RoundTrip implements [http.RoundTripper].
func (s sent) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range s {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// checkout returns a directory like this repository after `make build`, whose configuration
// listens on a free port.
func checkout(t *testing.T) (dir, port string) {
	t.Helper()
	dir = t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err = net.SplitHostPort(l.Addr().String())
	shipped, mod := readFile(t, "../config.hcl"), readFile(t, "../go.mod")
	config := strings.Replace(shipped, "127.0.0.1:7780", "127.0.0.1:"+port, 1)
	if config == shipped {
		t.Error("config.hcl does not listen at 127.0.0.1:7780, which README shows")
	}
	err = errors.Join(err, l.Close(),
		os.MkdirAll(filepath.Join(dir, "bin", "plugins"), 0o755),
		os.CopyFS(filepath.Join(dir, "sdk"), os.DirFS("../sdk")),
		os.WriteFile(filepath.Join(dir, "config.hcl"), []byte(config), 0o600),
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o600),
		copyProgram(filepath.Join(dir, "bin"), "toolhost"),
	)
	names, listErr := shippedPlugins()
	err = errors.Join(err, listErr)
	for _, name := range names {
		err = errors.Join(err, copyProgram(filepath.Join(dir, "bin"), filepath.Join("plugins", name)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, port
}

// copyProgram copies a program under test. A link would change the time of the program's file,
// and the hosts of all other tests would hash the program again.
func copyProgram(dir, name string) error {
	program, err := os.Open(filepath.Join(bin, name))
	if err != nil {
		return err
	}
	defer program.Close()
	return testprogram.Write(filepath.Join(dir, name), program)
}

// terminal runs commands as if typed on a terminal.
type terminal struct {
	typed string
	cmd   *exec.Cmd
	ended chan error

	mu  sync.Mutex // guards out
	out bytes.Buffer
}

// newTerminal runs a block of a page. In place of `make run` it runs the command in the
// Makefile, as TestReadmeRunsWhatMakeRuns checks.
func newTerminal(t *testing.T, dir, block string) *terminal {
	t.Helper()
	script := strings.Replace(block, "make run", "exec bin/toolhost serve --config config.hcl", 1)
	term := &terminal{typed: block, cmd: exec.Command("sh", "-ec", script), ended: make(chan error, 1)}
	term.cmd.Dir, term.cmd.Stdout, term.cmd.Stderr = dir, term, term
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := term.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // ends with the process
		term.ended <- term.cmd.Wait()
		close(done)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-term.cmd.Process.Pid, syscall.SIGTERM) // it may have ended
		<-done
	})
	return term
}

// Write implements [io.Writer].
func (term *terminal) Write(p []byte) (int, error) {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.out.Write(p)
}

func (term *terminal) printed() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.out.String()
}

// prints waits for lines of output, in which "..." matches anything.
func (term *terminal) prints(t *testing.T, want string) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(want) {
		line = strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSuffix(line, "\n")), `\.\.\.`, `\S+`)
		lines = append(lines, "^"+line+"$")
	}
	pattern := regexp.MustCompile("(?m)" + strings.Join(lines, "\n"))
	eventually(t, fmt.Sprintf("%s prints\n%s", term.typed, want), func() bool {
		return pattern.MatchString(term.printed())
	})
}

// ends waits for the commands to end, which must succeed.
func (term *terminal) ends(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	select {
	case err := <-term.ended:
		if err != nil {
			t.Fatalf("%s: %v\n%s", term.typed, err, term.printed())
		}
	case <-ctx.Done():
		t.Fatalf("%s has not ended\n%s", term.typed, term.printed())
	}
}
