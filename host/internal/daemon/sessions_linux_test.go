package daemon_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// withSessions and withoutSessions are revisions of MCP.
	withSessions, withoutSessions = "2025-11-25", "2026-07-28"
	// keptSessions is how many sessions of one credential a host keeps that their client left.
	keptSessions = 1024
)

// visitor is a client with connections of its own.
type visitor struct {
	url, token string
	transport  *http.Transport
}

// open sends a request and returns the answer with its open body.
func (v *visitor) open(ctx context.Context, method, path, body string, header ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, v.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+v.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := v.transport.RoundTrip(r)
	if err == nil && answer.StatusCode >= 300 {
		text, _ := io.ReadAll(answer.Body)
		err = fmt.Errorf("%s %s = %s: %s, %w", method, path, answer.Status, text, answer.Body.Close())
	}
	return answer, err
}

// send sends a request and returns the header of the answer, which must have a text.
func (v *visitor) send(ctx context.Context, text, method, path, body string, header ...string) (http.Header, error) {
	answer, err := v.open(ctx, method, path, body, header...)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(answer.Body)
	if err == nil && !strings.Contains(string(got), text) {
		err = fmt.Errorf("%s %s: no %q in %s", method, path, text, got)
	}
	return answer.Header, errors.Join(err, answer.Body.Close())
}

// begin begins a session of MCP and returns its headers.
func (v *visitor) begin(ctx context.Context) (session []string, err error) {
	got, err := v.send(ctx, "serverInfo", http.MethodPost, "/mcp",
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+withSessions+`","capabilities":{},"clientInfo":{"name":"visitor","version":"1"}}}`)
	if err != nil {
		return nil, err
	}
	session = []string{"Mcp-Session-Id", got.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", withSessions}
	_, err = v.send(ctx, "", http.MethodPost, "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session...)
	return session, err
}

// message is a call over MCP.
func message(tool, argument, meta string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,"arguments":{"name":%q},"_meta":{%s}}}`, tool, argument, meta)
}

func (v *visitor) end(ctx context.Context, session []string) error {
	_, err := v.send(ctx, "", http.MethodDelete, "/mcp", "", session...)
	return err
}

// firstEvent waits for the first event of a stream and leaves.
func (v *visitor) firstEvent(ctx context.Context, begins, method, path, body string, header ...string) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	answer, err := v.open(ctx, method, path, body, header...)
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), begins) {
			leave()
			_ = answer.Body.Close() // it was canceled
			return nil
		}
	}
	return errors.Join(fmt.Errorf("%s %s has no event %s", method, path, begins), answer.Body.Close())
}

// visits are the ways in which clients come and go. A visit returns its session if it leaves one behind.
var visits = []func(ctx context.Context, v *visitor, n int) (left []string, err error){
	func(ctx context.Context, v *visitor, _ int) ([]string, error) { // ends its session
		session, err := v.begin(ctx)
		if err != nil {
			return nil, err
		}
		_, err = v.send(ctx, "Hello, Bob!", http.MethodPost, "/mcp", message("greet", "Bob", ""), session...)
		return nil, errors.Join(err, v.end(ctx, session))
	},
	func(ctx context.Context, v *visitor, _ int) ([]string, error) { // vanishes after a call
		session, err := v.begin(ctx)
		if err != nil {
			return nil, err
		}
		_, err = v.send(ctx, "Hello, Bob!", http.MethodPost, "/mcp", message("greet", "Bob", ""), session...)
		return session, err
	},
	func(ctx context.Context, v *visitor, _ int) ([]string, error) { // vanishes with an open stream
		session, err := v.begin(ctx)
		if err != nil {
			return nil, err
		}
		ctx, leave := context.WithCancel(ctx)
		defer leave()
		stream, err := v.open(ctx, http.MethodGet, "/mcp", "", session...)
		if err == nil {
			leave()
			_ = stream.Body.Close() // it was canceled
		}
		return session, err
	},
	func(ctx context.Context, v *visitor, n int) ([]string, error) { // vanishes in a call that waits for a person, and ends its session
		session, err := v.begin(ctx)
		if err != nil {
			return nil, err
		}
		err = v.firstEvent(ctx, "data: ", http.MethodPost, "/mcp", message("change", fmt.Sprint("Bob ", n), `"progressToken":1`), session...)
		return nil, errors.Join(err, v.end(ctx, session))
	},
	func(ctx context.Context, v *visitor, _ int) ([]string, error) { // has no session
		_, err := v.send(ctx, "Hello, Bob!", http.MethodPost, "/mcp",
			message("greet", "Bob", `"io.modelcontextprotocol/protocolVersion":"`+withoutSessions+`","io.modelcontextprotocol/clientInfo":{"name":"visitor","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`),
			"Mcp-Protocol-Version", withoutSessions, "Mcp-Method", "tools/call", "Mcp-Name", "greet")
		return nil, err
	},
	func(ctx context.Context, v *visitor, n int) ([]string, error) { // REST, with a session by name
		_, err := v.send(ctx, "Hello, Bob!", http.MethodPost, "/v1/calls", `{"tool":"greet","arguments":{"name":"Bob"}}`, "Toolhost-Session", fmt.Sprint("visit-", n))
		return nil, err
	},
	func(ctx context.Context, v *visitor, n int) ([]string, error) { // REST, leaves while its call waits for a person
		got, err := v.send(ctx, "pending", http.MethodPost, "/v1/calls", fmt.Sprintf(`{"tool":"change","arguments":{"name":"Bob %d"}}`, n), "Toolhost-Session", fmt.Sprint("visit-", n), "Prefer", "approval-wait=0")
		if err != nil {
			return nil, err
		}
		_, err = v.send(ctx, "", http.MethodPost, got.Get("Location")+"/cancel", "")
		return nil, err
	},
	func(ctx context.Context, v *visitor, _ int) ([]string, error) { // leaves a stream of events
		return nil, v.firstEvent(ctx, "id: ", http.MethodGet, "/v1/events", "")
	},
}

// ownVisit calls a tool of a plugin with a process for each session, and ends the session.
func ownVisit(ctx context.Context, v *visitor, _ int) ([]string, error) {
	session, err := v.begin(ctx)
	if err != nil {
		return nil, err
	}
	_, err = v.send(ctx, session[1], http.MethodPost, "/mcp", message("own", "Bob", ""), session...)
	return nil, errors.Join(err, v.end(ctx, session))
}

// crowd makes visits to a host.
type crowd struct {
	url, token string

	mu   sync.Mutex // guards left
	left [][]string // sessions that were left behind
}

// visit makes visits, some at the same time.
func (c *crowd) visit(t *testing.T, from, to int) {
	t.Helper()
	var next atomic.Int64
	next.Store(int64(from))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { // ends with the visits
			for n := int(next.Add(1)) - 1; n < to; n = int(next.Add(1)) - 1 {
				visit := visits[n%len(visits)]
				if n%50 == 49 {
					visit = ownVisit
				}
				c.one(t, visit, n)
			}
		})
	}
	all.Wait()
}

func (c *crowd) one(t *testing.T, visit func(context.Context, *visitor, int) ([]string, error), n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	v := &visitor{url: c.url, token: c.token, transport: new(http.Transport)}
	defer v.transport.CloseIdleConnections()
	left, err := visit(ctx, v, n)
	if err != nil {
		t.Errorf("visit %d: %v", n, err)
	}
	if left != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.left = append(c.left, left)
	}
}

// endLeft ends the sessions that were left behind, and returns how many were still there.
func (c *crowd) endLeft(t *testing.T) (there int) {
	t.Helper()
	v := &visitor{url: c.url, token: c.token, transport: new(http.Transport)}
	defer v.transport.CloseIdleConnections()
	for _, session := range c.left {
		err := v.end(t.Context(), session)
		switch {
		case err == nil:
			there++
		case !strings.Contains(err.Error(), "404"):
			t.Error(err)
		}
	}
	c.left = nil
	return there
}

// held is what a host has.
type held struct {
	Descriptors, Goroutines, Children, Files int
	// Rows are those of the tables that keep no history.
	Rows int
}

// hold counts what the host in this process has.
func hold(t *testing.T, stateDir string) (h held) {
	t.Helper()
	descriptors, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	h.Descriptors, h.Goroutines = len(descriptors), runtime.NumGoroutine()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		stat, _ := os.ReadFile(path) // it may have ended
		if _, rest, ok := strings.Cut(string(stat), ") "); ok && strings.HasPrefix(rest[2:], fmt.Sprint(os.Getpid(), " ")) {
			h.Children++
		}
	}
	if err := filepath.WalkDir(stateDir, func(_ string, _ fs.DirEntry, err error) error {
		h.Files++
		if errors.Is(err, fs.ErrNotExist) { // it has just been removed
			return nil
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(stateDir, "toolhost.db")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range []string{"grants", "idempotency", "offers", "revoked_tokens", "stops", "secrets"} {
		var rows int
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		h.Rows += rows
	}
	return h
}

// within reports whether h has nothing that before had not, but for what comes and goes by itself.
func (h held) within(before held) bool {
	return h.Descriptors <= before.Descriptors+4 && h.Goroutines <= before.Goroutines+8 && h.Children <= before.Children &&
		h.Files <= before.Files && h.Rows <= before.Rows
}

func heap() tool.ByteSize {
	var memory runtime.MemStats
	runtime.GC()
	runtime.GC() // frees what the first one finalized
	runtime.ReadMemStats(&memory)
	return tool.ByteSize(memory.HeapAlloc)
}

// TestSessionsVanish has clients come and go in every way: 10,000 of them if all rounds are asked for.
// Nothing is left of them but history; of those that leave their sessions behind, the last ones,
// until an hour has passed.
func TestSessionsVanish(t *testing.T) {
	cfg := loadWith(t, `
server { listen = "127.0.0.1:0" }
policy { actions_per_hour = "unlimited" }
plugin "own" {
  tier            = "read_only"
  claims          = "trust"
  isolation_scope = "session"
  max_per_user    = 32
}
`)
	d := start(t, cfg)
	address, err := d.ServeHTTP(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := auth.ReadKey(filepath.Join(cfg.StateDir, auth.AgentKey))
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{url: "http://" + address, token: token}
	d.call(t, "greet", `{"name":"Bob"}`) // its process stays
	before := hold(t, cfg.StateDir)
	var after held
	over := func() bool { after = hold(t, cfg.StateDir); return after.within(before) }
	defer func() { t.Logf("before %+v, after %+v", before, after) }()
	all := soak.Rounds(100, 10_000)
	c.visit(t, 0, all/2)
	c.endLeft(t)
	eventually(t, "nothing is left over", over)
	had := heap() // with what is filled once, such as buffers

	c.visit(t, all/2, all)
	behind, with := len(c.left), heap()
	there := c.endLeft(t)
	if there > keptSessions || there < min(behind, keptSessions)-8 {
		t.Errorf("of %d sessions that were left behind, %d were there; want at most %d", behind, there, keptSessions)
	}
	eventually(t, "nothing is left over", over)
	has := heap()
	t.Logf("%d visits; heap %v, with %d sessions %v, after them %v", all, had, there, with, has)
	if has > had+2*tool.MiB {
		t.Errorf("the heap has grown from %v to %v", had, has)
	}
}

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for tick, end := time.Tick(20*time.Millisecond), time.After(60*time.Second); !holds(); {
		select {
		case <-tick:
		case <-end:
			t.Fatalf("it never came true that %s", what)
		}
	}
}
