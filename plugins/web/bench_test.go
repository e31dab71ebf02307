package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// BenchmarkFetch64 makes 64 calls at once, each in its own session, like a host: of small pages,
// larger ones, and the largest ones raw, by web_fetch and http_request, in a charset in which
// each byte becomes three. It reports the maximum memory of the plugin's process.
func BenchmarkFetch64(b *testing.B) {
	paragraph := "<p>" + strings.Repeat("Boats are old, and people have always built them. ", 20) + "</p>\n"
	largest := strings.Repeat("\x80", 4.9e6)
	for _, tt := range []struct{ name, tool, arguments, text string }{
		{"10KB", "web_fetch", `"max_length":100`, strings.Repeat(paragraph, 10e3/len(paragraph))},
		{"250KB", "web_fetch", `"max_length":100`, strings.Repeat(paragraph, 250e3/len(paragraph))},
		{"1MB", "web_fetch", `"max_length":100`, strings.Repeat(paragraph, 1e6/len(paragraph))},
		{"4.9MB-raw", "web_fetch", `"max_length":100,"format":"raw"`, largest},
		{"4.9MB-http_request", "http_request", `"method":"GET"`, largest},
	} {
		b.Run(tt.name, func(b *testing.B) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html; charset=windows-1252")
				w.Header().Set("Cache-Control", "no-store")
				_, _ = io.WriteString(w, tt.text)
			}))
			defer server.Close()
			before := children(b)
			p := sdktest.StartBinary(b, os.Args[0], sdktest.Options{Env: []string{"WEB_AS_PLUGIN=1"}, Limits: sdktest.Limits{Memory: 512 * tool.MiB}, Settings: map[string]any{
				"ports":         []int{int(netip.MustParseAddrPort(server.Listener.Addr().String()).Port())},
				"allow_private": []string{"127.0.0.1/32"}, "robots": false, "host_rate": 100_000, "host_concurrency": 64, "timeout": "2m",
			}})
			started := slices.DeleteFunc(children(b), func(pid string) bool { return slices.Contains(before, pid) })
			if len(started) != 1 {
				b.Fatalf("the plugin's process is one of %v", started)
			}
			for b.Loop() {
				var calls sync.WaitGroup
				for i := range 64 {
					calls.Go(func() {
						got := p.Run(b.Context(), tool.Call{
							ID: fmt.Sprint("tc_", i), Tool: tt.tool, Arguments: fmt.Appendf(nil, `{"url":%q,%s}`, server.URL, tt.arguments),
							Context: tool.Context{Session: fmt.Sprint("session ", i)},
						}, tool.Sink{})
						if got.Error != nil {
							b.Error(got.Error)
						}
					})
				}
				calls.Wait()
			}
			b.ReportMetric(peak(b, started[0]), "plugin-MiB")
		})
	}
}

// children lists the processes that this one has started.
func children(b *testing.B) []string {
	b.Helper()
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		b.Fatal(err)
	}
	var all []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has just ended
		}
		all = append(all, strings.Fields(string(text))...)
	}
	return all
}

// peak is the maximum memory of a process, in MiB.
func peak(b *testing.B, pid string) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%s/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`).FindSubmatch(status)
	if found == nil {
		b.Fatalf("no VmHWM in %s", status)
	}
	kib, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return kib / 1024
}
