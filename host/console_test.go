package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
)

// tab is a page of a real browser with a login of its own.
type tab struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // chromedp's name for a page

	mu    sync.Mutex // guards wrong
	wrong []string   // what the browser's console says
}

// openBrowser starts a browser, which ends with the test.
func openBrowser(t *testing.T) context.Context {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		missing(t, "chromium")
	}
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// newTab opens a page with cookies of its own and logs it in.
func newTab(browser context.Context, t *testing.T, h *host) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil { // the page ends with the context of its first step
		t.Fatal(err)
	}
	p.do(chromedp.EmulateViewport(1280, 900))
	messages := chromedp.Console(ctx)
	go func() { // ends with the page
		for m, err := range messages {
			if err != nil {
				return
			}
			p.mu.Lock()
			p.wrong = append(p.wrong, fmt.Sprintf("%s: %s", m.Type, m.Text))
			p.mu.Unlock()
		}
	}()
	link := strings.TrimSpace(h.ok(t, "console", "--print"))
	p.do(chromedp.Navigate(link), chromedp.Click(chromedp.CSS(".narrow button")), chromedp.WaitVisible(chromedp.CSS("#waiting")))
	return p
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		late, stop := context.WithTimeout(p.ctx, patience/10)
		defer stop()
		at, _ := chromedp.Run(late, chromedp.Evaluate[string]("location.href + ': ' + document.body.innerText"))
		p.mu.Lock()
		defer p.mu.Unlock()
		p.t.Fatalf("%v at %s\nthe browser says %q", err, at, p.wrong)
	}
}

// is waits until an expression of JavaScript is true on the page.
func (p *tab) is(what, expression string) {
	p.t.Helper()
	eventually(p.t, what, func() bool {
		ok, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		return err == nil && ok // an error: the page is being replaced
	})
}

// shows waits until the page shows a text.
func (p *tab) shows(text string) {
	p.t.Helper()
	p.is("the page shows "+text, fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// key presses a key once the page takes keys and shows a call.
func (p *tab) key(id, key string) {
	p.t.Helper()
	p.is("the page takes keys", fmt.Sprintf("document.body.dataset.keys !== undefined && document.getElementById('card')?.dataset.id === %q", id))
	p.do(chromedp.KeyEvent(key))
}

// quiet checks that the browser has found nothing wrong: no error, and no violation of the policy.
func (p *tab) quiet(except ...string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range p.wrong {
		if !slices.ContainsFunc(except, func(e string) bool { return strings.Contains(text, e) }) {
			p.t.Errorf("the browser says: %s", text)
		}
	}
}

// unusedPort returns a free port.
func unusedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// TestConsole decides calls in a real browser.
func TestConsole(t *testing.T) {
	t.Parallel()
	browser := openBrowser(t)
	at := fmt.Sprintf("listen = \"127.0.0.1:%d\"", unusedPort(t))
	h := serve(t, writeConfig(t, strings.Replace(listening, `listen = "127.0.0.1:0"`, at, 1)+writing))
	state := func(id string) approval.State {
		r, err := h.approver(t).Approval(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return r.State
	}
	decided := func(id string, want ...approval.State) {
		t.Helper()
		eventually(t, fmt.Sprintf("%s is %v", id, want), func() bool { return slices.Contains(want, state(id)) })
	}
	write := func(name string) string {
		t.Helper()
		_, id := h.begin(t, "write_file", map[string]any{"path": name, "content": "hello " + name + "\n"})
		return id
	}
	ran := []approval.State{approval.Approved, approval.Spent}
	p := newTab(browser, t, h)
	p.shows("No call waits.")

	// A call appears without a reload, and the title counts it; y approves it.
	p.do(chromedp.Evaluate[chromedp.Void]("void (window.stays = true)"))
	p.is("the page follows events", "document.body.dataset.connected !== undefined")
	first := write("first.txt")
	p.shows("first.txt")
	p.is("the page was not loaded again, and its title counts", "window.stays && document.title.startsWith('(1) ')")
	p.key(first, "y")
	decided(first, ran...)
	p.shows("No call waits.")
	eventually(t, "the approved call has run", func() bool { return h.file("first.txt") == "hello first.txt\n" })

	// n rejects with a message, by keys alone.
	second := write("second.txt")
	p.shows("second.txt")
	p.key(second, "n")
	p.do(chromedp.KeyEvent("not this one"), chromedp.KeyEvent("\r"))
	decided(second, approval.Rejected)
	if r, err := h.approver(t).Approval(t.Context(), second); err != nil || r.Message != "not this one" || r.Via != "console" {
		t.Errorf("it was rejected over %s with %q, %v", r.Via, r.Message, err)
	}

	// By mouse, of two that wait the second.
	third, fourth := write("third.txt"), write("fourth.txt")
	p.do(chromedp.WaitVisible(chromedp.CSS(`a[href="/approvals/`+fourth+`"]`)), chromedp.Click(chromedp.CSS(`a[href="/approvals/`+fourth+`"]`)),
		chromedp.WaitVisible(chromedp.CSS(`#card[data-id="`+fourth+`"]`)), chromedp.Click(chromedp.CSS("#reject button")))
	decided(fourth, approval.Rejected)

	// What is typed stays while other calls come, and a decision that is made elsewhere is shown.
	p.key(third, "n")
	p.do(chromedp.KeyEvent("half a sen"))
	fifth := write("fifth.txt")
	p.do(chromedp.WaitVisible(chromedp.CSS(`a[href="/approvals/` + fifth + `"]`)))
	p.is("the words are still there", "document.getElementById('message').value === 'half a sen' && document.activeElement.id === 'message'")
	h.ok(t, "approvals", "show", third)
	h.ok(t, "approvals", "reject", third, "--message", "elsewhere")
	p.shows("This call is decided")
	p.shows("over cli")

	// Several together.
	sixth := write("sixth.txt")
	p.do(chromedp.Navigate(h.url+"/"), chromedp.Click(chromedp.CSS(`input[value="`+fifth+`"]`)), chromedp.WaitVisible(chromedp.CSS(`input[value="`+sixth+`"]`)),
		chromedp.Click(chromedp.CSS(`input[value="`+sixth+`"]`)), chromedp.Click(chromedp.CSS("#waiting form > button")),
		chromedp.WaitVisible(chromedp.CSS(".sticky")))
	p.shows("fifth.txt")
	p.shows("sixth.txt")
	p.do(chromedp.Click(chromedp.CSS(".sticky .yes")), chromedp.WaitVisible(chromedp.CSS(".outcomes")))
	decided(fifth, ran...)
	decided(sixth, ran...)

	// Two pages decide at once: one wins, and the other says so.
	q := newTab(browser, t, h)
	seventh := write("seventh.txt")
	p.do(chromedp.Navigate(h.url + "/approvals/" + seventh))
	q.do(chromedp.Navigate(h.url + "/approvals/" + seventh))
	var both sync.WaitGroup
	for page, form := range map[*tab]string{p: "approve", q: "reject"} {
		both.Go(func() {
			_, _ = chromedp.Run(page.ctx, chromedp.Evaluate[chromedp.Void]("void document.getElementById('"+form+"')?.requestSubmit()"))
		})
	}
	both.Wait()
	eventually(t, "the call is decided", func() bool { return state(seventh) != approval.Open })
	for _, page := range []*tab{p, q} {
		page.do(chromedp.Navigate(h.url + "/approvals/" + seventh))
		page.shows("This call is decided")
	}

	// The scope: a gives later calls, too.
	eighth := write("eighth.txt")
	p.do(chromedp.Navigate(h.url + "/"))
	p.key(eighth, "a")
	p.do(chromedp.WaitVisible(chromedp.CSS("#scope fieldset")), chromedp.Click(chromedp.CSS("#scope .quiet")), chromedp.WaitVisible(chromedp.CSS(".past")))
	p.shows("In the last 30 days")
	p.do(chromedp.Click(chromedp.CSS("#scope .yes")))
	decided(eighth, ran...)
	if o := h.post(t, "write_file", map[string]any{"path": "ninth.txt", "content": "x"}); o.Status != "success" {
		t.Errorf("a call that the scope covers: %s", o.Raw)
	}
	grants, err := h.approver(t).Grants(t.Context(), false)
	if err != nil || len(grants) != 1 {
		t.Fatalf("%d grants, %v", len(grants), err)
	}
	h.ok(t, "grants", "revoke", grants[0].ID)

	// The host is killed, and the page is up to date again when the next one runs.
	p.do(chromedp.Navigate(h.url + "/"))
	p.is("the page follows events", "document.body.dataset.connected !== undefined")
	h.kill()
	p.shows("The host does not answer")
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	tenth := write("tenth.txt")
	p.shows("tenth.txt")
	p.is("the page follows again", "document.getElementById('connection').hidden")

	// On a telephone nothing is cut off, and the keys of the card are there.
	p.do(chromedp.EmulateViewport(360, 740), chromedp.Navigate(h.url+"/"))
	p.is("nothing scrolls sideways", "document.documentElement.scrollWidth <= 360")
	p.shows("tenth.txt")
	h.ok(t, "approvals", "show", tenth)
	h.ok(t, "approvals", "reject", tenth)
	p.quiet("net::ERR_", "409") // the host was gone, and one of two decisions came late
	q.quiet("net::ERR_", "409")
}
