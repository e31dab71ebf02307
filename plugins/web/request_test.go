package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// echo answers with the request that it received.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("X-Seen", r.Header.Get("Authorization"))
	_, _ = fmt.Fprintf(w, "%s %s auth=%q key=%q type=%q body=%q", r.Method, r.URL.Path, r.Header.Get("Authorization"), r.Header.Get("X-Key"), r.Header.Get("Content-Type"), body)
}

func apis() site {
	return site{
		"/echo":             echo,
		"/elsewhere":        redirect("https://other.example/echo", http.StatusTemporaryRedirect),
		"/here":             redirect("/echo", http.StatusTemporaryRedirect),
		"/up":               redirect("https://api.example.com/echo", http.StatusTemporaryRedirect),
		"/away":             redirect("https://evil.example/back", http.StatusTemporaryRedirect),
		"evil.example/back": redirect("https://api.example.com/echo?chosen", http.StatusTemporaryRedirect),
		"/out":              redirect("https://docs.example.org/echo", http.StatusTemporaryRedirect),
		"/packed":           func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "br") },
		"/long":             serve("text/plain", strings.Repeat("0123456789", 200_000)),
		"/missing": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error":"none"}`)
		},
		"/picture":  serve("image/png", "\x89PNG....."),
		"/document": serve("application/pdf", "%PDF-1.4\n..."),
		"/headers": func(w http.ResponseWriter, _ *http.Request) {
			for i := range 100 {
				w.Header().Set(fmt.Sprintf("X-%03d", i), strings.Repeat("v", 600))
			}
		},
	}
}

func requestCalls() []toolCall {
	call := func(name string, in httpRequestArgs, want string, code tool.Code) toolCall {
		if !strings.Contains(in.URL, "://") {
			in.URL = "https://api.example.com" + in.URL
		}
		in.Method = cmp.Or(in.Method, "GET")
		return toolCall{name: name, tool: "http_request", in: in, want: want, code: code}
	}
	secret := map[string]string{"Authorization": "Bearer {{secret:token}}"}
	return []toolCall{
		call("GET", httpRequestArgs{URL: "/echo"}, "GET /echo", ""),
		call("the status", httpRequestArgs{URL: "/missing"}, "HTTP/2.0 404 Not Found", ""),
		call("its body", httpRequestArgs{URL: "/missing"}, `{"error":"none"}`, ""),
		call("HEAD", httpRequestArgs{URL: "/echo", Method: "HEAD"}, "HTTP/2.0 200 OK", ""),
		call("POST of a text", httpRequestArgs{URL: "/echo", Method: "POST", Body: "a b"}, `POST /echo auth="" key="" type="text/plain; charset=utf-8" body="a b"`, ""),
		call("PUT of JSON", httpRequestArgs{URL: "/echo", Method: "PUT", JSON: sdk.JSON(`{"id": 9007199254740993}`)}, `type="application/json" body="{\"id\":9007199254740993}"`, ""),
		call("DELETE", httpRequestArgs{URL: "/echo", Method: "DELETE"}, "DELETE /echo", ""),
		call("PUT of JSON as text", httpRequestArgs{URL: "/echo", Method: "PUT", JSON: sdk.JSON(`"{\"id\": 5}"`)}, `type="application/json" body="{\"id\": 5}"`, ""),
		call("PATCH", httpRequestArgs{URL: "/echo", Method: "PATCH", JSON: sdk.JSON("[]"), Headers: map[string]string{"content-type": "application/merge-patch+json"}}, `type="application/merge-patch+json"`, ""),
		call("OPTIONS", httpRequestArgs{URL: "/echo", Method: "OPTIONS"}, "OPTIONS /echo", ""),
		call("a header", httpRequestArgs{URL: "/echo", Headers: map[string]string{"X-Key": "v"}}, `key="v"`, ""),
		call("a secret, which is not shown", httpRequestArgs{URL: "/echo", Headers: secret}, `auth="Bearer [secret token]"`, ""),
		call("nor in a header", httpRequestArgs{URL: "/echo", Headers: secret}, "X-Seen: Bearer [secret token]", ""),
		call("a secret for another host", httpRequestArgs{URL: "https://evil.example/echo", Headers: secret}, "may not be sent to evil.example", tool.PermissionDenied),
		call("a secret for a host that only looks alike", httpRequestArgs{URL: "https://api.example.com.evil.example/echo", Headers: secret}, "may not be sent to", tool.PermissionDenied),
		call("a secret for a host below", httpRequestArgs{URL: "https://pages.api.example.com/echo", Headers: secret}, "may not be sent to pages.api.example.com", tool.PermissionDenied),
		call("a secret for all hosts below", httpRequestArgs{URL: "https://a.other.example/echo", Headers: map[string]string{"X-Key": "{{secret:below}}"}}, `key="[secret below]"`, ""),
		call("a secret without TLS", httpRequestArgs{URL: "http://api.example.com/echo", Headers: secret}, "unencrypted", tool.PermissionDenied),
		call("a secret that is for no host", httpRequestArgs{URL: "/echo", Headers: map[string]string{"X-Key": "{{secret:other}}"}}, "to any host", tool.PermissionDenied),
		call("a secret that was not granted", httpRequestArgs{URL: "/echo", Headers: map[string]string{"X-Key": "{{ secret: missing }}"}}, "", tool.PermissionDenied),
		call("a secret that is no header", httpRequestArgs{URL: "/echo", Headers: map[string]string{"X-Key": "{{secret:lines}}"}}, "more than one line", tool.Failed),
		call("a redirect on the host", httpRequestArgs{URL: "/here", Headers: secret}, `GET /echo auth="Bearer [secret token]"`, ""),
		call("headers stay with their host", httpRequestArgs{URL: "/elsewhere", Headers: map[string]string{"Authorization": "Bearer {{secret:token}}", "X-Key": "v"}}, `GET /echo auth="" key=""`, ""),
		call("headers that left do not come back", httpRequestArgs{URL: "/away", Headers: secret}, `GET /echo auth=""`, ""),
		call("headers are of one scheme", httpRequestArgs{URL: "http://api.example.com/up", Headers: map[string]string{"X-Key": "v"}}, `GET /echo auth="" key=""`, ""),
		call("a redirect to a domain that is not for requests", httpRequestArgs{URL: "/out"}, "not in a domain that the administrator allows", tool.PermissionDenied),
		call("HEAD of what would be packed", httpRequestArgs{URL: "/packed", Method: "HEAD"}, "Content-Encoding: br", ""),
		call("a long answer", httpRequestArgs{URL: "/long"}, "[the first 256KiB of a body of 2000000B; request a part of it", ""),
		call("no redirect of a change", httpRequestArgs{URL: "/here", Method: "POST", Body: "x"}, "HTTP/2.0 307 Temporary Redirect", ""),
		call("what is no text", httpRequestArgs{URL: "/picture"}, "[binary content: image/png, 9 bytes]", ""),
		call("a PDF", httpRequestArgs{URL: "/document"}, "[binary content: application/pdf", ""),
		call("many headers", httpRequestArgs{URL: "/headers"}, "more headers]", ""),
		call("no address", httpRequestArgs{URL: "https://10.0.0.1/"}, "private or special", tool.PermissionDenied),
		call("a domain that is not for requests", httpRequestArgs{URL: "https://docs.example.org/echo"}, "not in a domain that the administrator allows", tool.PermissionDenied),
		call("both bodies", httpRequestArgs{URL: "/echo", Method: "POST", Body: "a", JSON: sdk.JSON("1")}, "use one of them", tool.InvalidArgument),
		call("a body for GET", httpRequestArgs{URL: "/echo", Body: "a"}, "cannot have a body", tool.InvalidArgument),
		call("what is no JSON", httpRequestArgs{URL: "/echo", Method: "POST", JSON: sdk.JSON(`"{"`)}, "not valid JSON", tool.InvalidArgument),
		call("too much", httpRequestArgs{URL: "/echo", Method: "POST", Body: strings.Repeat("x", 6<<20)}, "at most 5242880", tool.InvalidArgument),
		call("the connection's header", httpRequestArgs{URL: "/echo", Headers: map[string]string{"Host": "internal"}}, "the connection controls it", tool.InvalidArgument),
		call("a proxy's header", httpRequestArgs{URL: "/echo", Headers: map[string]string{"Proxy-Authorization": "x"}}, "the connection controls it", tool.InvalidArgument),
		call("a header in two lines", httpRequestArgs{URL: "/echo", Headers: map[string]string{"X-Key": "a\r\nHost: internal"}}, "line break", tool.InvalidArgument),
		call("a name that is none", httpRequestArgs{URL: "/echo", Headers: map[string]string{"X Key": "a"}}, "not a valid header name", tool.InvalidArgument),
		call("a header twice", httpRequestArgs{URL: "/echo", Headers: map[string]string{"X-Key": "a", "x-key": "b"}}, "set twice", tool.InvalidArgument),
		call("long headers", httpRequestArgs{URL: "/echo", Headers: map[string]string{"X-Key": strings.Repeat("x", 20<<10)}}, "at most 16384", tool.InvalidArgument),
		call("many names", httpRequestArgs{URL: "/echo", Headers: manyHeaders()}, "at most 50", tool.InvalidArgument),
	}
}

func manyHeaders() map[string]string {
	headers := make(map[string]string)
	for i := range 51 {
		headers[fmt.Sprintf("X-%d", i)] = "v"
	}
	return headers
}

const secretValue = "s3cr3t+value/of token"

func requestOptions() sdktest.Options {
	return sdktest.Options{
		Secrets: map[string]string{"token": secretValue + "\n", "lines": "a\nb", "other": "never", "below": "be1ow"},
		Settings: map[string]any{
			"host_rate":       100_000,
			"request_domains": []string{"example.com", "other.example", "evil.example"},
			"secrets":         map[string][]string{"token": {"api.example.com"}, "lines": {"api.example.com"}, "missing": {"api.example.com"}, "below": {"*.other.example"}},
		},
	}
}

func TestRequest(t *testing.T) {
	w := newWorld(t, apis())
	p := w.start(t, requestOptions())
	for _, c := range requestCalls() {
		t.Run(c.name, func(t *testing.T) {
			c.check(t, p)
			all, err := json.Marshal(p.Call(t.Context(), c.tool, c.in))
			if err != nil || strings.Contains(string(all), "s3cr3t") {
				t.Errorf("the secret is in the result: %s, %v", all, err)
			}
		})
	}
}

// A server cannot show a secret by where it redirects to, whether that succeeds or not.
func TestSecretsInRedirects(t *testing.T) {
	const value = "hunter2-qzqmore" // another one is its beginning
	key := func(r *http.Request) string { return r.Header.Get("X-Key") }
	to := func(address func(key string) string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, address(key(r)), http.StatusFound) }
	}
	w := newWorld(t, site{
		"/echo":    echo,
		"/on":      redirect("/echo", http.StatusFound),
		"/query":   to(func(key string) string { return "/on?k=" + key }),
		"/host":    to(func(key string) string { return "https://" + key + ".example.com/echo" }),
		"/down":    to(func(key string) string { return "http://api.example.com/" + key }),
		"/port":    to(func(key string) string { return "https://" + key + ".example.com:99/" }),
		"/circle":  to(func(key string) string { return "/circle?" + key }),
		"/nowhere": to(func(key string) string { return "https://" + key + ".missing.example/" }),
		"/end": func(w http.ResponseWriter, r *http.Request) { // a secret with which the shown text ends
			_, _ = io.WriteString(w, strings.Repeat("x", maxShownBody-12)+key(r)+strings.Repeat("y", 1<<20))
		},
		"/overflow": to(func(key string) string { return "/" + strings.Repeat(key, 20) }),
		"/type": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/"+key(r))
			_, _ = io.WriteString(w, "text")
		},
		"/binary": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/"+key(r))
			_, _ = w.Write([]byte{0, 1, 2, 0xff})
		},
		"/name": func(w http.ResponseWriter, r *http.Request) { w.Header().Set("0"+key(r), "x") },
	})
	w.names[value+".missing.example"] = [][]string{{}}
	p := w.start(t, sdktest.Options{
		Secrets:  map[string]string{"token": value, "part": "hunter2"},
		Settings: map[string]any{"host_rate": 100_000, "secrets": map[string][]string{"token": {"api.example.com"}, "part": {"api.example.com"}}},
	})
	for _, path := range []string{"/echo", "/query", "/host", "/down", "/port", "/circle", "/nowhere", "/overflow", "/end", "/type", "/binary", "/name"} {
		for range 5 { // in any order of the secrets
			in := httpRequestArgs{URL: "https://api.example.com" + path, Method: "GET", Headers: map[string]string{"X-Key": "{{secret:token}}", "X-Part": "{{secret:part}}"}}
			if path == "/end" {
				delete(in.Headers, "X-Part")
			}
			got := p.Call(t.Context(), "http_request", in)
			all, err := json.Marshal(got)
			if err != nil || strings.Contains(string(all), "hunter2") || strings.Contains(string(all), "qzq") {
				t.Fatalf("%s shows the secret: %s, %v", path, all, err)
			}
			for _, part := range got.Content {
				if strings.Contains(string(part.Data), "hunter2") || strings.Contains(string(part.Data), "qzq") {
					t.Fatalf("%s shows the secret: %s", path, part.Data)
				}
			}
		}
	}
}

// If a long answer is cut inside a secret, the start of the secret is not shown. Other secrets
// before it, which shorten the answer, and its length make no difference.
func TestSecretsAtTheCut(t *testing.T) {
	mark := "qzq" + strings.Repeat("-", 30)
	for name, tt := range map[string]struct{ short, long string }{
		"many others":          {short: "hunter2" + mark, long: "hunter2" + mark + "more"},
		"a long one":           {short: "short", long: mark + strings.Repeat("0123456789", 3000)},
		"one that is escaped":  {short: "short", long: mark + strings.Repeat("<>", 6000)},
		"one longer than all":  {short: "short", long: mark + strings.Repeat("0123456789", 30_000)},
		"one with two parts":   {short: mark, long: mark + mark},
		"one of one character": {short: "0", long: mark + strings.Repeat("0", 2000)},
	} {
		t.Run(name, func(t *testing.T) {
			var at atomic.Int64 // how many bytes precede the secret
			w := newWorld(t, site{"/cut": func(w http.ResponseWriter, _ *http.Request) {
				before := int(at.Load())
				others := strings.Repeat(tt.short+" ", min(before/(len(tt.short)+1), 1000))
				_, _ = io.WriteString(w, strings.Repeat("x", before-len(others))+others+tt.long+strings.Repeat("y", 64<<10))
			}})
			w.everywhere = true
			p := w.start(t, sdktest.Options{
				Secrets:  map[string]string{"short": tt.short, "long": tt.long},
				Settings: map[string]any{"host_rate": 100_000, "secrets": map[string][]string{"short": {"api.example.com"}, "long": {"api.example.com"}}},
			})
			longest := max(len(tt.long), len(url.QueryEscape(tt.long)))
			for _, end := range []int{maxShownBody, maxShownBody + 16<<10, maxShownBody + longest} {
				for _, shown := range []int{12, len(mark) + 500} {
					at.Store(int64(end - shown))
					got := p.Call(t.Context(), "http_request", httpRequestArgs{URL: "https://api.example.com/cut", Method: "GET", Headers: map[string]string{"X-Key": "{{secret:short}}{{secret:long}}"}})
					if got.Error != nil {
						t.Fatal(got.Error)
					}
					if text := got.Text(); strings.Contains(text, "qzq") || !strings.Contains(text, "of a body of") {
						t.Errorf("with %d bytes before %d the start is shown: %q", shown, end, text[max(0, strings.Index(text, "qzq")-20):][:60])
					}
				}
			}
		})
	}
}

// Every part of a long answer shows where it is from: no part that fits is without the lines.
func TestLongAnswers(t *testing.T) {
	w := newWorld(t, site{"/long": serve("text/plain; charset=utf-8", strings.Repeat("ä€😀", 10_000))})
	const most = 4 * tool.KiB
	p := w.start(t, sdktest.Options{Context: tool.Context{MaxOutput: most}})
	got := p.Call(t.Context(), "http_request", httpRequestArgs{URL: "https://example.com/long", Method: "GET"})
	if got.Error != nil || len(got.Content)%3 != 0 || len(got.Content) < 3*90_000/int(most) {
		t.Fatalf("%d parts, %v", len(got.Content), got.Error)
	}
	var body strings.Builder
	for part := range slices.Chunk(got.Content, 3) {
		begin, end := string(part[0].Data), string(part[2].Data)
		if !strings.HasPrefix(begin, "[begin ") || !strings.HasPrefix(end, "[end "+strings.Fields(begin)[1]) || len(begin)+len(part[1].Data)+len(end)+2 > int(most) {
			t.Errorf("%d bytes between %q and %q", len(part[1].Data), begin, end)
		}
		body.Write(part[1].Data)
	}
	if _, text, _ := strings.Cut(body.String(), "\n\n"); text != strings.Repeat("ä€😀", 10_000) {
		t.Errorf("the parts together have %d bytes", len(text))
	}
}

// The approval of a call with effects shows what it would send, except the values of secrets,
// and the call sends exactly that.
func TestRequestPreview(t *testing.T) {
	w := newWorld(t, apis())
	p := w.start(t, requestOptions())
	in := httpRequestArgs{URL: "https://api.example.com/echo", Method: "POST", JSON: sdk.JSON(`{"a":1}`), Headers: map[string]string{"Authorization": "Bearer {{secret:token}}"}}
	preview, err := p.Preview(t.Context(), "http_request", in)
	if err != nil {
		t.Fatal(err)
	}
	if want := "Sends POST https://api.example.com/echo with 7 bytes, with the secret token"; preview.Summary != want {
		t.Errorf("summary %q, want %q", preview.Summary, want)
	}
	want := "POST https://api.example.com/echo\nAuthorization: Bearer {{secret:token}}\nContent-Type: application/json\n\n{\"a\":1}"
	if got := string(preview.Content[0].Data); got != want {
		t.Errorf("content %q, want %q", got, want)
	}
	if got := w.dials(); len(got) > 0 {
		t.Errorf("the preview contacted %v", got)
	}
	run := func(in httpRequestArgs) tool.Result {
		arguments, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		return p.Run(t.Context(), tool.Call{ID: "tc_1", Tool: "http_request", Arguments: arguments, Context: tool.Context{PreviewDigest: preview.Digest}}, tool.Sink{})
	}
	if got := run(in); got.Error != nil {
		t.Errorf("what was shown: %v", got.Error)
	}
	in.JSON = sdk.JSON(`{"a":2}`)
	if got := run(in); got.Error == nil || got.Error.Code != tool.Conflict {
		t.Errorf("another request than the one that was shown: %v", got.Error)
	}
	if _, err := p.Preview(t.Context(), "http_request", httpRequestArgs{URL: "https://10.0.0.1/", Method: "POST"}); err == nil {
		t.Error("a request that may not be sent has a preview")
	}
}

// The tier of a call is the tier of its method.
func TestRequestTiers(t *testing.T) {
	p := newPlugin(outside{})
	(&web{}).addTools(p, false, true)
	for _, spec := range p.Tools() {
		if spec.Name != "http_request" {
			continue
		}
		tiers := map[string]tool.Tier{}
		for _, rule := range spec.TierWhen {
			tiers[string(rule.Equals)] = rule.Tier
		}
		if spec.Tier != tool.Privileged || len(tiers) != 2 || tiers[`"GET"`] != tool.SideEffecting || tiers[`"HEAD"`] != tool.SideEffecting {
			t.Errorf("tier %v, %v", spec.Tier, tiers)
		}
	}
}
