package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

func redirect(to string, code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, code) }
}

// answering checks a request and answers with JSON.
func answering(t *testing.T, check func(r *http.Request, body []byte) string, answer string) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if wrong := check(r, body); wrong != "" {
			t.Errorf("%s %s: %s", r.Method, r.URL, wrong)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}
}

// wantQuery compares the parameters of an address.
func wantQuery(r *http.Request, want url.Values) string {
	if got := r.URL.Query(); got.Encode() != want.Encode() {
		return fmt.Sprintf("the query is %s, want %s", got.Encode(), want.Encode())
	}
	return ""
}

// providerTest is a service as its documentation says that it is.
type providerTest struct {
	provider string
	settings map[string]any
	path     string
	check    func(r *http.Request, body []byte) string
	answer   string
	want     string
}

func providerTests() []providerTest {
	return []providerTest{
		{
			"searxng",
			map[string]any{"provider": "searxng", "url": "http://127.0.0.1/sub"},
			"/sub/search",
			func(r *http.Request, _ []byte) string {
				return wantQuery(r, url.Values{"q": {"go modules site:go.dev"}, "format": {"json"}, "time_range": {"month"}})
			},
			`{"query":"go modules","number_of_results":0,"results":[{"url":"https://go.dev/ref/mod","title":"Go Modules","content":"A <b>module</b> &amp; more","engine":"x","publishedDate":"2024-05-01T00:00:00"},
			{"url":"javascript:alert(1)","title":"bad","content":""}],"answers":[],"unresponsive_engines":[]}`,
			"1. Go Modules\n   https://go.dev/ref/mod\n   2024-05-01T00:00:00\n   A module & more\n",
		},
		{
			"brave",
			map[string]any{"provider": "brave"},
			"/res/v1/web/search",
			func(r *http.Request, _ []byte) string {
				if key := r.Header.Get("X-Subscription-Token"); key != "key-of-brave" || r.Host != "api.search.brave.com" {
					return fmt.Sprintf("host %s, key %q", r.Host, key)
				}
				return wantQuery(r, url.Values{"q": {"go modules site:go.dev"}, "count": {"3"}, "freshness": {"pm"}, "text_decorations": {"false"}})
			},
			`{"type":"search","web":{"type":"search","results":[{"title":"Go Modules","url":"https://go.dev/ref/mod","description":"A <strong>module</strong>","age":"May 1, 2024","page_age":"2024-05-01T00:00:00"}]}}`,
			"1. Go Modules\n   https://go.dev/ref/mod\n   2024-05-01T00:00:00\n   A module\n",
		},
		{
			"tavily",
			map[string]any{"provider": "tavily", "secret": "other"},
			"/search",
			func(r *http.Request, body []byte) string {
				if r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer key-of-other" || r.Header.Get("Content-Type") != "application/json" {
					return fmt.Sprint(r.Method, r.Header)
				}
				if want := `{"query":"go modules","max_results":3,"search_depth":"basic","time_range":"month","include_domains":["go.dev"]}`; string(body) != want {
					return fmt.Sprintf("the body is %s, want %s", body, want)
				}
				return ""
			},
			`{"query":"go modules","answer":null,"images":[],"results":[{"title":"Go Modules","url":"https://go.dev/ref/mod","content":"A module","score":0.9,"raw_content":null,"published_date":"2024-05-01"}],"response_time":1.2}`,
			"1. Go Modules\n   https://go.dev/ref/mod\n   2024-05-01\n   A module\n",
		},
		{
			"kagi",
			map[string]any{"provider": "kagi", "url": "https://kagi.example"},
			"/api/v0/search",
			func(r *http.Request, _ []byte) string {
				if r.Header.Get("Authorization") != "Bot key-of-kagi" {
					return fmt.Sprint(r.Header)
				}
				return wantQuery(r, url.Values{"q": {"go modules site:go.dev"}, "limit": {"3"}})
			},
			`{"meta":{"id":"1","node":"x","ms":5},"data":[{"t":0,"url":"https://go.dev/ref/mod","title":"Go Modules","snippet":"A module","published":"2024-05-01T00:00:00Z"},{"t":1,"list":["go mod"]}]}`,
			"1. Go Modules\n   https://go.dev/ref/mod\n   2024-05-01T00:00:00Z\n   A module\n",
		},
	}
}

// keys are the secrets of all providers.
func keys() map[string]string {
	return map[string]string{"brave": "key-of-brave\n", "kagi": "key-of-kagi", "other": "key-of-other", "tavily": "wrong one"}
}

// startSearch runs the plugin with a provider in a world in which every address is
// a server, since an administrator may name a private one.
func startSearch(t *testing.T, settings map[string]any, handler http.Handler, ports ...int) *sdktest.Plugin {
	t.Helper()
	w := newWorld(t, handler)
	w.names["127.0.0.1"] = [][]string{{public}}
	w.everywhere = true
	return w.start(t, sdktest.Options{Secrets: keys(), Settings: map[string]any{"search": settings, "ports": ports}})
}

func searchCalls() []toolCall {
	return []toolCall{
		{name: "all that can be said", tool: "web_search", in: webSearchArgs{Query: "go modules", Count: 3, Freshness: "month", Site: "go.dev"}},
	}
}

func TestSearchProviders(t *testing.T) {
	for _, tt := range providerTests() {
		t.Run(tt.provider, func(t *testing.T) {
			p := startSearch(t, tt.settings, site{tt.path: answering(t, tt.check, tt.answer)})
			in, _ := searchCalls()[0].in.(webSearchArgs)
			if tt.provider == "kagi" {
				toolCall{tool: "web_search", in: in, want: "kagi does not support freshness", code: tool.InvalidArgument}.check(t, p)
				in.Freshness = ""
			}
			got := p.Call(t.Context(), "web_search", in)
			if got.Error != nil {
				t.Fatal(got.Error.ModelText())
			}
			if text := string(got.Content[1].Data); text != tt.want {
				t.Errorf("text %q, want %q", text, tt.want)
			}
			var data struct {
				Results []struct{ Title, URL, Snippet, Published string }
			}
			if err := json.Unmarshal(got.Structured, &data); err != nil || len(data.Results) != 1 || data.Results[0].URL != "https://go.dev/ref/mod" {
				t.Errorf("structured %s, %v", got.Structured, err)
			}
			if got.Metadata["untrusted"] != true || got.Metadata["provider"] != tt.provider || !strings.HasPrefix(fmt.Sprint(got.Metadata["origin"]), "http") {
				t.Errorf("metadata %v", got.Metadata)
			}
		})
	}
}

// Whatever a provider answers, the call ends with an error for the model, and only the
// provider gets the key.
func TestSearchFailures(t *testing.T) {
	for _, tt := range providerTests() {
		for _, f := range []struct {
			name   string
			answer http.HandlerFunc
			want   string
			code   tool.Code
		}{
			{"nonsense", serve("application/json", "<html>hello</html>"), "not a list of results", tool.Failed},
			{"another JSON", serve("application/json", `{"ok":true}`), "not a list of results", tool.Failed},
			{"a list", serve("application/json", `[]`), "not a list of results", tool.Failed},
			{"a wrong type", serve("application/json", `{"type":"search","results":5,"web":5,"data":5}`), "not a list of results", tool.Failed},
			{"nothing", serve("application/json", ``), "not a list of results", tool.Failed},
			{"too much", serve("application/json", tt.answer+strings.Repeat(" ", 5<<20)), "not a list of results", tool.Failed},
			{"429", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(http.StatusTooManyRequests)
			}, "too many queries", tool.RateLimited},
			{"401", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "rejects the API key", tool.Unavailable},
			{"500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, "failed (500 Internal Server Error)", tool.Unavailable},
			{"422", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnprocessableEntity) }, "rejects the query", tool.Failed},
			{"a redirect", redirect("https://evil.example/steal", http.StatusFound), "rejects the query", tool.Failed},
			{"an end", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "cannot be reached", tool.Unavailable},
		} {
			t.Run(tt.provider+" "+f.name, func(t *testing.T) {
				p := startSearch(t, tt.settings, site{
					tt.path:  f.answer,
					"/steal": func(http.ResponseWriter, *http.Request) { t.Error("the key was sent to another host") },
				})
				toolCall{tool: "web_search", in: webSearchArgs{Query: "go modules", Count: 10}, want: f.want, code: f.code}.check(t, p)
			})
		}
	}
}

func TestSearchArguments(t *testing.T) {
	empty := answering(t, func(*http.Request, []byte) string { return "" }, `{"results":[]}`)
	p := startSearch(t, map[string]any{"provider": "searxng", "url": "http://127.0.0.1"}, site{"/search": empty})
	many := answering(t, func(*http.Request, []byte) string { return "" }, `{"results":[`+strings.Repeat(`{"url":"https://a.example/","title":"T","content":"`+strings.Repeat("x", 2000)+`"},`, 30)+`{"url":"https://b.example/"}]}`)
	full := startSearch(t, map[string]any{"provider": "searxng", "url": "http://127.0.0.1"}, site{"/search": many})
	bare := answering(t, func(*http.Request, []byte) string { return "" }, `{"results":[{"url":"https://b.example/","title":"<b> </b>"}]}`)
	untitled := startSearch(t, map[string]any{"provider": "searxng", "url": "http://127.0.0.1"}, site{"/search": bare})
	none := startSearch(t, nil, site{})
	ungranted := startSearch(t, map[string]any{"provider": "brave", "secret": "unknown"}, site{})
	for _, tt := range []struct {
		p *sdktest.Plugin
		c toolCall
	}{
		{p, toolCall{name: "no results", in: webSearchArgs{Query: "x", Count: 10}, want: "[no results]"}},
		{p, toolCall{name: "no query", in: webSearchArgs{Query: " ", Count: 10}, want: "query is empty", code: tool.InvalidArgument}},
		{p, toolCall{name: "a long query", in: webSearchArgs{Query: strings.Repeat("x", 1001), Count: 10}, want: "at most 1000", code: tool.InvalidArgument}},
		{p, toolCall{name: "too few", in: webSearchArgs{Query: "x", Count: -1}, want: "expected 1 to 20", code: tool.InvalidArgument}},
		{p, toolCall{name: "too many", in: webSearchArgs{Query: "x", Count: 21}, want: "expected 1 to 20", code: tool.InvalidArgument}},
		{p, toolCall{name: "no site", in: webSearchArgs{Query: "x", Count: 10, Site: "https://go.dev"}, want: "as docs.python.org", code: tool.InvalidArgument}},
		{p, toolCall{name: "a site that is none", in: webSearchArgs{Query: "x", Count: 10, Site: "go.dev?x"}, want: "as docs.python.org", code: tool.InvalidArgument}},
		{p, toolCall{name: "a private site", in: webSearchArgs{Query: "x", Count: 10, Site: "wiki.corp"}, want: "the settings allow", code: tool.InvalidArgument}},
		{untitled, toolCall{name: "a result without a title", in: webSearchArgs{Query: "x", Count: 10}, want: "\n1. https://b.example/\n\n[end"}},
		{full, toolCall{name: "no more than asked for", in: webSearchArgs{Query: "x", Count: 5}, want: "5. T"}},
		{none, toolCall{name: "no provider", in: webSearchArgs{Query: "x", Count: 10}, want: "no search service is configured", code: tool.Unavailable}},
		{ungranted, toolCall{name: "no key", in: webSearchArgs{Query: "x", Count: 10}, code: tool.PermissionDenied}},
	} {
		t.Run(tt.c.name, func(t *testing.T) {
			tt.c.tool = "web_search"
			tt.c.check(t, tt.p)
		})
	}
	// A site is a host with any port, and its name is normalized as for a lookup.
	site443 := startSearch(t, map[string]any{"provider": "searxng", "url": "http://127.0.0.1"}, site{"/search": answering(t, func(r *http.Request, _ []byte) string {
		return wantQuery(r, url.Values{"q": {"x site:xn--bcher-kva.example"}, "format": {"json"}})
	}, `{"results":[]}`)}, 8080)
	toolCall{tool: "web_search", in: webSearchArgs{Query: "x", Count: 10, Site: "BÜCHER.example"}, want: "[no results]"}.check(t, site443)
	// The service may be anywhere but at the metadata of a cloud.
	for _, address := range []string{"http://169.254.169.254", "http://rebound.example"} {
		w := newWorld(t, site{})
		w.names["rebound.example"] = [][]string{{"64:ff9b::a9fe:a9fe"}}
		metadata := w.start(t, sdktest.Options{Settings: map[string]any{"search": map[string]any{"provider": "searxng", "url": address}}})
		toolCall{tool: "web_search", in: webSearchArgs{Query: "x", Count: 10}, want: "cannot be reached", code: tool.Unavailable}.check(t, metadata)
		if got := w.dials(); len(got) > 0 {
			t.Errorf("%v were dialled", got)
		}
	}
	if got := full.Call(t.Context(), "web_search", webSearchArgs{Query: "x", Count: 5}); strings.Contains(got.Text(), "6. ") {
		t.Error("more results than asked for")
	}
}

// The number of simultaneous queries is bounded: each answer is held in memory.
func TestSearchesAreBounded(t *testing.T) {
	var asked atomic.Int64
	full, release := make(chan struct{}), make(chan struct{})
	p := startSearch(t, map[string]any{"provider": "searxng", "url": "http://127.0.0.1"}, site{
		"/search": func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) == maxAsking {
				close(full)
			}
			<-release
			_, _ = io.WriteString(w, `{"results":[]}`)
		},
		"/data": serve("text/plain", "data"),
	})
	var calls sync.WaitGroup
	for range 4 * maxAsking {
		calls.Go(func() {
			toolCall{tool: "web_search", in: webSearchArgs{Query: "x", Count: 10}, want: "[no results]"}.check(t, p)
		})
	}
	<-full
	toolCall{tool: "web_fetch", in: webFetchArgs{URL: "https://example.com/data"}, want: "data"}.check(t, p)
	if got := asked.Load(); got != maxAsking {
		t.Errorf("%d questions are asked at once, want %d", got, maxAsking)
	}
	close(release)
	calls.Wait()
}
