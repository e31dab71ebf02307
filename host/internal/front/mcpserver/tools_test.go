package mcpserver

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// output collects what the server sends to a client.
type output struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

// Write implements [io.Writer].
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// TestNoChangesBeforeInitialize changes the list before a client has initialized: the client
// receives no notification. The control is the next change, after it has initialized.
func TestNoChangesBeforeInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tools, err := catalog.New(catalog.Options{Plugins: []catalog.Plugin{{Name: "p", Ceiling: tool.ReadOnly, TrustClaims: true}}})
		if err != nil {
			t.Fatal(err)
		}
		change := func(name string) {
			spec := tool.Spec{Name: name, Tier: tool.ReadOnly, Description: "Does nothing.", InputSchema: json.RawMessage(`{"type":"object"}`)}
			if err := tools.Publish("p", "1", []tool.Spec{spec}); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Second) // the SDK combines changes within some milliseconds
			synctest.Wait()
		}
		s := New(Options{Catalog: tools, Logger: hclog.NewNullLogger()})
		defer s.Close()
		in, client := io.Pipe()
		var out output
		ended := make(chan error, 1)
		go func() { ended <- s.ServeStdio(t.Context(), in, &out, nil) }() // ends with the input; awaited below
		synctest.Wait()
		change("one")
		if got := out.String(); got != "" {
			t.Errorf("a client that has said nothing is sent %q", got)
		}
		for _, line := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		} {
			if _, err := io.WriteString(client, line+"\n"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		change("two")
		if got := out.String(); strings.Count(got, "notifications/tools/list_changed") != 1 {
			t.Errorf("an initialized client is sent %q, want that the list has changed", got)
		}
		_ = client.Close()
		if err := <-ended; err != nil {
			t.Errorf("ServeStdio = %v", err)
		}
	})
}
