package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// remote serves h and returns its address.
func remote(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	return s.URL
}

// streamable is a server over HTTP.
func streamable(opts *mcp.StreamableHTTPOptions) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return goodServer() }, opts)
}

// dial starts the plugin with a server that has a URL.
func dial(t *testing.T, url string, settings map[string]any) *sdktest.Plugin {
	t.Helper()
	if settings == nil {
		settings = map[string]any{}
	}
	settings["url"] = url
	return sdktest.Start(t, newPlugin(), sdktest.Options{Settings: settings, Config: sdk.Config{Name: "peer"}})
}

func TestRemote(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]*mcp.StreamableHTTPOptions{
		"sessions": nil, "stateless": {Stateless: true}, "answers in JSON": {JSONResponse: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var wrong atomic.Int32
			h := streamable(opts)
			url := remote(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer of-the-test" {
					wrong.Add(1)
				}
				h.ServeHTTP(w, r)
			}))
			p := dial(t, url, map[string]any{"headers": map[string]any{"Authorization": "Bearer of-the-test"}})
			if got := p.Call(t.Context(), "peer_echo", map[string]any{"text": "hello"}); got.Text() != "hello" {
				t.Errorf("echo = %q, %v", got.Text(), got.Error)
			}
			if n := wrong.Load(); n > 0 {
				t.Errorf("%d requests without the header", n)
			}
		})
	}
}

// A canceled call of a server over HTTP ends at once.
func TestRemoteCancel(t *testing.T) {
	t.Parallel()
	p := dial(t, remote(t, streamable(nil)), nil)
	ctx, cancel := context.WithCancel(t.Context())
	got := p.Run(ctx, tool.Call{Tool: "peer_wait"}, tool.Sink{Progress: func(tool.Progress) { cancel() }})
	if got.Error == nil || got.Error.Code != tool.Canceled {
		t.Errorf("the canceled call = %v", got.Error)
	}
	if err := p.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

// A server that has forgotten the session gets a new one, and the call once more. Only servers of
// older revisions have sessions.
func TestRemoteSessionEnds(t *testing.T) {
	t.Parallel()
	var current atomic.Pointer[http.Handler]
	fresh := func() {
		h := streamable(nil)
		current.Store(&h)
	}
	fresh()
	var forgotten atomic.Int32
	p := dial(t, remote(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || strings.Contains(string(body), "server/discover") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		(*current.Load()).ServeHTTP(&countNotFound{w, &forgotten}, r)
	})), nil)
	for range 3 {
		if got := p.Call(t.Context(), "peer_fail", nil); got.Text() != "the disk is on fire" {
			t.Errorf("fail = %q, %v", got.Text(), got.Error)
		}
		fresh()
	}
	if forgotten.Load() < 2 {
		t.Errorf("the server has forgotten %d sessions, want two at least", forgotten.Load())
	}
}

// countNotFound counts the answers with status 404.
type countNotFound struct {
	http.ResponseWriter

	count *atomic.Int32
}

// WriteHeader implements [http.ResponseWriter].
func (c *countNotFound) WriteHeader(status int) {
	if status == http.StatusNotFound {
		c.count.Add(1)
	}
	c.ResponseWriter.WriteHeader(status)
}

// Unwrap lets [http.ResponseController] find the functions of the writer.
func (c *countNotFound) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Servers that break rules, or are none.
func TestBadRemotes(t *testing.T) {
	t.Parallel()
	other := remote(t, streamable(nil))
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"no server of MCP", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, "does not start: "},
		{"refused", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "Unauthorized"},
		{"a page", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "unsupported content type"},
		{"another host", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other, http.StatusTemporaryRedirect) }, "the server redirects to another host"},
		{"in circles", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusTemporaryRedirect) }, "the server redirects more than 3 times"},
		{"huge", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for range 3 {
				fmt.Fprint(w, strings.Repeat(" ", 1<<19))
			}
		}, "larger than 1MiB"},
		{"a huge event", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: "+strings.Repeat("x", 3<<20)+"\n\n")
		}, "does not start: "},
		{"repeats secrets", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no %s"}}`, r.Header.Get("Authorization"))
		}, "no [hidden]"},
		{"never answers", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // a server notices the end of a request after its body
			<-r.Context().Done()
		}, "it did not answer within 500ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			timeout := "9s"
			if tt.name == "never answers" {
				timeout = "500ms"
			}
			url := remote(t, tt.handler)
			got := refusal(t, map[string]any{"url": url, "headers": map[string]any{"Authorization": "Bearer of-the-test"}, "max_message": "1MiB", "start_timeout": timeout})
			if !strings.Contains(got, tt.want) || strings.Contains(got, "of-the-test") {
				t.Errorf("refused because %q, want %q and no secret", got, tt.want)
			}
		})
	}
}

// The header goes to the host of the setting only, and to it after a redirect, too.
func TestRedirect(t *testing.T) {
	t.Parallel()
	h := streamable(nil)
	url := remote(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("X-Key") == "":
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/old":
			http.Redirect(w, r, "/new", http.StatusPermanentRedirect)
		default:
			h.ServeHTTP(w, r)
		}
	}))
	p := dial(t, url+"/old", map[string]any{"headers": map[string]any{"X-Key": "of-the-test"}})
	if got := p.Call(t.Context(), "peer_echo", map[string]any{"text": "x"}); got.Text() != "x" {
		t.Errorf("echo = %q, %v", got.Text(), got.Error)
	}
}

func TestNoNetwork(t *testing.T) {
	t.Parallel()
	for _, f := range sdktest.Check(t.Context(), sdktest.InProcess(newPlugin()), sdktest.Options{
		Settings: map[string]any{"url": "https://example.com"}, Config: sdk.Config{NoNetwork: true},
	}) {
		if strings.Contains(f.Problem, `url needs a network: add network { mode = "proxy" }`) {
			return
		}
	}
	t.Error("a server with a URL is accepted without a network")
}
