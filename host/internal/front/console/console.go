// Package console serves the pages for people: what waits for a decision, and what the host does.
// It is a client of the REST interface in the same process. Every page reads, and every form acts,
// as the caller of the browser's login, so a page shows and does nothing that REST refuses.
//
// The pages work without JavaScript. No invisible character reaches a page, whoever wrote it.
package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/state/weblogin"
	"github.com/toolhost/toolhost/sdk/tool"
)

//go:embed templates/*.html assets/*
var files embed.FS

const (
	// maxForm bounds the body of a form, in bytes.
	maxForm = 256 << 10
	// maxWrite bounds how long a browser may take to read a page.
	maxWrite = 30 * time.Second
	// maxWaiting bounds the waiting calls of a list.
	maxWaiting = 200
)

// Options configure a [Console]. Both are required.
type Options struct {
	// API answers what the pages ask.
	API *httpapi.Server
	// Logins tell who a browser is.
	Logins *weblogin.Logins
}

// Console serves the pages. It is safe for concurrent use.
type Console struct {
	opts      Options
	mux       *http.ServeMux
	templates map[string]*template.Template // by the name of the file
	assets    map[string]asset              // by the path
}

// New returns the pages.
func New(opts Options) (*Console, error) {
	if opts.API == nil || opts.Logins == nil {
		return nil, errors.New("console: no interface or no logins are given")
	}
	c := &Console{opts: opts, mux: http.NewServeMux(), templates: map[string]*template.Template{}}
	if err := errors.Join(c.readTemplates(), c.readAssets()); err != nil {
		return nil, err
	}
	for at, a := range c.assets {
		c.mux.HandleFunc("GET "+at, a.serve)
	}
	for _, p := range pages() {
		c.mux.HandleFunc("GET "+p.path, func(w http.ResponseWriter, r *http.Request) { c.show(w, r, p) })
	}
	for _, a := range actions() {
		c.mux.HandleFunc("POST "+a.path, func(w http.ResponseWriter, r *http.Request) { c.act(w, r, a) })
	}
	c.mux.HandleFunc("GET /events", c.events)
	c.mux.HandleFunc("GET "+httpapi.LoginPath, c.loginPage)
	c.mux.HandleFunc("POST "+httpapi.LoginPath, c.login)
	c.mux.HandleFunc("POST /logout", c.logout)
	c.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		c.failed(w, r, &httpapi.Problem{Status: http.StatusNotFound, Title: "There is no such page", Detail: "The address may be mistyped, or the page is one of a newer version."})
	})
	return c, nil
}

// readTemplates reads each page together with the layout.
func (c *Console) readTemplates() error {
	layout, err := template.New("layout.html").Funcs(functions()).ParseFS(files, "templates/layout.html", "templates/card.html")
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	for _, name := range names {
		base := path.Base(name)
		if base == "layout.html" || base == "card.html" {
			continue
		}
		one, err := layout.Clone()
		if err == nil {
			one, err = one.ParseFS(files, name)
		}
		if err != nil {
			return fmt.Errorf("console: %w", err)
		}
		c.templates[base] = one
	}
	return nil
}

// policy is the Content-Security-Policy of each page: nothing is inline, and scripts make no markup
// of text.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// ServeHTTP implements [http.Handler].
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control": "no-store", "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
	} {
		w.Header().Set(name, value)
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	c.mux.ServeHTTP(w, r)
}

// page is a page of a login.
type page struct {
	// path is the pattern of its address. A page with a name is in the navigation, for callers with
	// one of the roles. The roles decide nothing else: the interface refuses what a caller may not
	// see.
	path, name string
	roles      auth.Roles
	// template is the file of the page, and show returns its content.
	template string
	show     func(*visit) (content, error)
}

// content is what a page shows.
type content struct {
	Title string
	// Body is for the template.
	Body any
	// Problem is shown above the body, with its status.
	Problem *httpapi.Problem
}

// action is what a form does. It returns the address to go on at, or the content of the page with
// the template.
type action struct {
	path     string
	template string
	do       func(*visit) (next string, instead *content, err error)
}

// visit is one request of a browser that is logged in.
type visit struct {
	*http.Request
	w      http.ResponseWriter
	caller auth.Caller
	api    *client.Client
	csrf   string
}

// visit returns the visit of a request. The error is for the page that says how to log in.
func (c *Console) visit(w http.ResponseWriter, r *http.Request) (*visit, error) {
	secret := secretOf(r)
	if secret == "" {
		return nil, weblogin.ErrNotValid
	}
	from := httpapi.OriginOf(r.Context())
	ctx := context.WithoutCancel(r.Context())
	caller, err := c.opts.Logins.Caller(ctx, secret, from, r.Header.Get(liveHeader) == "")
	if err != nil {
		return nil, err
	}
	api, err := client.New(client.Options{Name: "console", Handler: c.opts.API.As(func() (auth.Caller, error) {
		return c.opts.Logins.Caller(ctx, secret, from, false)
	})})
	if err != nil {
		return nil, err
	}
	return &visit{Request: r, w: w, caller: caller, api: api, csrf: csrfOf(secret)}, nil
}

// liveHeader marks a request that the page's script makes by itself: it does not keep the login.
const liveHeader = "Toolhost-Live"

// csrfOf returns what each form of a login has.
func csrfOf(secret string) string {
	sum := sha256.Sum256([]byte("toolhost console form " + secret))
	return hex.EncodeToString(sum[:])
}

// show answers with a page.
func (c *Console) show(w http.ResponseWriter, r *http.Request, p page) {
	v, err := c.visit(w, r)
	if err != nil {
		c.loggedOut(w, r, err)
		return
	}
	shown, err := p.show(v)
	if err != nil {
		c.failedFor(v, err)
		return
	}
	c.render(v, p.template, shown)
}

// act does what a form asks for.
func (c *Console) act(w http.ResponseWriter, r *http.Request, a action) {
	v, err := c.visit(w, r)
	if err != nil {
		c.loggedOut(w, r, err)
		return
	}
	if err := r.ParseForm(); err != nil {
		c.failedFor(v, &httpapi.Problem{Status: http.StatusBadRequest, Title: "The form did not arrive", Detail: "It is damaged or too large."})
		return
	}
	if subtle.ConstantTimeCompare([]byte(r.PostForm.Get("csrf")), []byte(v.csrf)) != 1 {
		c.failedFor(v, &httpapi.Problem{
			Status: http.StatusForbidden, Title: "The form is of another login", Detail: "Nothing was done.", Hint: "load the page again, then decide",
		})
		return
	}
	next, instead, err := a.do(v)
	switch {
	case err != nil:
		c.failedFor(v, err)
	case instead != nil:
		c.render(v, a.template, *instead)
	default:
		http.Redirect(w, r, next, http.StatusSeeOther)
	}
}

// layout is the data of each template.
type layout struct {
	Title string
	// Nav are the pages that the caller can open; Here is the path of this one.
	Nav  []navItem
	Here string
	// Live is set if the page follows events.
	Live    bool
	Caller  auth.Caller
	CSRF    string
	Waiting int
	Problem *httpapi.Problem
	Body    any
}

// navItem is a page in the navigation.
type navItem struct{ Path, Name string }

// render writes a page.
func (c *Console) render(v *visit, name string, shown content) {
	data := layout{Title: shown.Title, Here: v.URL.Path, Live: v.Method == http.MethodGet, Caller: v.caller, CSRF: v.csrf, Problem: shown.Problem, Body: shown.Body}
	for _, p := range pages() {
		if p.name != "" && v.caller.Roles&p.roles != 0 {
			data.Nav = append(data.Nav, navItem{strings.TrimSuffix(p.path, "{$}"), p.name})
		}
	}
	waiting, err := v.api.Approvals(v.Context(), client.ApprovalFilter{States: []approval.State{approval.Open}, Limit: maxWaiting})
	if err != nil {
		c.failedFor(v, err)
		return
	}
	for _, a := range waiting {
		if !a.MayNotDecide {
			data.Waiting++
		}
	}
	status := http.StatusOK
	if shown.Problem != nil {
		status = shown.Problem.Status
	}
	c.write(v.w, status, name, data)
}

// failedFor writes a page about an error to a browser that is logged in.
func (c *Console) failedFor(v *visit, err error) {
	if errors.Is(err, client.ErrBroken) || v.Context().Err() != nil {
		return // the browser is gone
	}
	c.failed(v.w, v.Request, problemOf(err))
}

// problemOf returns an error as a problem.
func problemOf(err error) *httpapi.Problem {
	if p, ok := errors.AsType[*httpapi.Problem](err); ok {
		return p
	}
	return &httpapi.Problem{Status: http.StatusInternalServerError, Title: "The page cannot be shown", Detail: err.Error()}
}

// failed writes a page about a problem, without anything of a login.
func (c *Console) failed(w http.ResponseWriter, _ *http.Request, p *httpapi.Problem) {
	c.write(w, p.Status, "problem.html", layout{Title: p.Title, Problem: p})
}

// write writes a template. What is invisible in it becomes visible: templates escape markup, this
// escapes the characters that hide or turn text.
func (c *Console) write(w http.ResponseWriter, status int, name string, data layout) {
	var text bytes.Buffer
	if err := c.templates[name].Execute(&text, data); err != nil {
		http.Error(w, "the page cannot be written: "+err.Error(), http.StatusInternalServerError)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(maxWrite)) // a test has none
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(tool.Visible(text.String()))) // the browser may be gone
}

// asset is a file that pages load. It is the same for everybody.
type asset struct {
	media, tag string
	text       []byte
}

func (c *Console) readAssets() error {
	media := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	c.assets = map[string]asset{}
	names, err := fs.Glob(files, "assets/*")
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return fmt.Errorf("console: %w", err)
		}
		sum := sha256.Sum256(text)
		c.assets["/"+name] = asset{media[path.Ext(name)], `"` + hex.EncodeToString(sum[:8]) + `"`, text}
	}
	return nil
}

func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-cache") // asks each time: the next version has the same names
	w.Header().Set("ETag", a.tag)
	w.Header().Set("Content-Type", a.media)
	if slices.Contains(r.Header.Values("If-None-Match"), a.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(a.text) // the browser may be gone
}
