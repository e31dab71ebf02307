package egress_test

import (
	"encoding/json"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/guard"
)

// clients are programs that get each URL through the proxy. They read URLs in their own ways, so they ask
// the proxy for different things than Go does.
var clients = map[string]struct{ program, script string }{
	"curl": {"curl", `for u in "$@"; do curl -sS -g -L -m 5 -o /dev/null --proxy "$AT" -- "$u" || true; done`},
	"python": {"python3", `exec python3 -c '
import sys, urllib.request
for u in sys.argv[1:]:
    try: urllib.request.urlopen(u, timeout=5).read()
    except Exception as e: pass
' "$@"`},
	"node": {"node", `exec node -e '
const http = require("http"), at = new URL(process.env.AT)
const one = (u) => new Promise((done) => {
  try {
    const to = new URL(u)
    const options = to.protocol === "https:" ? { method: "CONNECT", path: to.hostname + ":" + (to.port || 443) } : { path: to.href, headers: { host: to.host } }
    const r = http.request({ host: at.hostname, port: at.port, timeout: 5000, ...options }, (a) => a.resume().on("end", done))
    r.on("connect", (a, s) => { s.destroy(); done() }).on("error", done).on("timeout", () => { r.destroy(); done() }).end()
  } catch { done() }
})
;(async () => { for (const u of process.argv.slice(1)) await one(u) })()
' "$@"`},
	"git": {"git", `for u in "$@"; do git -c http.lowSpeedTime=5 ls-remote "$u" || true; done`},
}

// TestCasesSSRFByClients asks the proxy for what the table denies with the programs that tools run.
// The control is that each reaches a public host.
func TestCasesSSRFByClients(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "plugins", "web", "testdata", "cases", "ssrf.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Cases []ssrfCase `json:"cases"`
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	names := map[string][][]string{}
	var denied []string
	for _, c := range table.Cases {
		u, err := url.Parse(c.URL)
		if !c.refused() || err != nil || strings.HasPrefix(c.URL, "-") || !slices.Contains([]string{"http", "https"}, u.Scheme) {
			continue
		}
		denied = append(denied, c.URL)
		inside := []string{"127.0.0.1"} // a name that looks like a number, as some resolvers read it
		if c.Resolve != nil {
			inside = c.Resolve
		} else if c.Sequence != nil {
			inside = slices.Concat(c.Sequence[1:]...)
		}
		host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		if host != "example.com" {
			names[host] = [][]string{inside}
		}
	}
	if len(denied) < 30 {
		t.Fatalf("the table denies %d addresses, want at least 30", len(denied))
	}
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(client.program); err != nil {
				if os.Getenv("CI") != "" {
					t.Fatalf("%s is missing, and in CI nothing is skipped", client.program)
				}
				t.Skipf("%s is missing", client.program)
			}
			w := newWorld(t, rules(t, "*"))
			w.locked(func() { w.names = maps.Clone(names) })
			at := "http://" + w.address
			cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", client.script, "sh", "http://control.example/"}, denied...)...)
			cmd.Dir = t.TempDir()
			cmd.Env = []string{
				"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "AT=" + at, "http_proxy=" + at, "https_proxy=" + at, "HTTPS_PROXY=" + at, "no_proxy=",
				"GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1",
			}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			requests, trapped := w.arrived()
			if len(trapped) > 0 {
				t.Errorf("%q reached what is not public", trapped)
			}
			if !slices.ContainsFunc(requests, func(r request) bool { return r.host == "control.example" }) {
				t.Errorf("control: it does not reach a public host\n%s", out)
			}
			for _, to := range w.dials() {
				if a := netip.MustParseAddrPort(to); guard.Public(a.Addr()) != nil || a.Port() != 80 && a.Port() != 443 {
					t.Errorf("%s was dialed", to)
				}
			}
			if n := len(w.closed); n < len(denied)/2 {
				t.Errorf("the proxy was asked %d times for %d addresses: the client refuses too much itself", n, len(denied))
			}
		})
	}
}
