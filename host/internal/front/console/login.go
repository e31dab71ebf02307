package console

import (
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/state/weblogin"
)

// loginLasts is how long a browser keeps the cookie, in seconds; the host ends the login sooner.
const loginLasts = 12 * 60 * 60

// cookieName returns the name of the cookie. Cookies belong to a name and not to a port, so each
// host of a machine has another one. A browser sets one with __Host- over TLS only, and for one name
// only.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "default"
	}
	if r.TLS != nil {
		return "__Host-toolhost-" + port
	}
	return "toolhost-" + port
}

// secretOf returns the secret in the cookie of a request, or "".
func secretOf(r *http.Request) string {
	cookies := r.CookiesNamed(cookieName(r))
	if len(cookies) != 1 { // two are a page's of another host on this machine
		return ""
	}
	return cookies[0].Value
}

// setCookie sets the cookie, or removes it if age is negative.
func setCookie(w http.ResponseWriter, r *http.Request, secret string, age int) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure is set where there is TLS; without, the cookie is for this machine's accounts
		Name: cookieName(r), Value: secret, Path: "/", MaxAge: age, Secure: r.TLS != nil, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

// loginData is the data of the page that opens a link.
type loginData struct {
	Code, User, Roles string
}

// loginPage asks whether to log in. Only the form opens the link: programs that look at links, as
// those of mail, do not send forms.
func (c *Console) loginPage(w http.ResponseWriter, r *http.Request) {
	code := r.URL.Query().Get("code")
	caller, err := c.opts.Logins.Look(code, httpapi.OriginOf(r.Context()))
	if err != nil {
		c.loggedOut(w, r, err)
		return
	}
	c.write(w, http.StatusOK, "login.html", layout{Title: "Log in", Body: loginData{code, caller.User, caller.Roles.String()}})
}

// login opens a link. A login that the browser had ends: no page that set a cookie before knows the
// new one.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		c.loggedOut(w, r, weblogin.ErrNotValid)
		return
	}
	secret, err := c.opts.Logins.Begin(r.Context(), r.PostForm.Get("code"), httpapi.OriginOf(r.Context()))
	if err != nil {
		c.loggedOut(w, r, err)
		return
	}
	if before := secretOf(r); before != "" {
		_ = c.opts.Logins.End(r.Context(), before) // it ends by itself at the latest
	}
	setCookie(w, r, secret, loginLasts)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// logout ends the login of the browser.
func (c *Console) logout(w http.ResponseWriter, r *http.Request) {
	v, err := c.visit(w, r)
	if err != nil {
		c.loggedOut(w, r, err)
		return
	}
	if err := r.ParseForm(); err != nil || r.PostForm.Get("csrf") != v.csrf {
		c.failed(w, r, &httpapi.Problem{Status: http.StatusForbidden, Title: "The form is of another login", Detail: "Nothing was done."})
		return
	}
	if err := c.opts.Logins.End(r.Context(), secretOf(r)); err != nil {
		c.failedFor(v, err)
		return
	}
	setCookie(w, r, "", -1)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// loggedOutData is the data of the page for a browser that is not logged in.
type loggedOutData struct {
	// Why is set if a login was refused; Again is the address that the browser asked for.
	Why, Again string
}

// loggedOut says how to log in.
func (c *Console) loggedOut(w http.ResponseWriter, r *http.Request, err error) {
	status, data := http.StatusUnauthorized, loggedOutData{Again: r.URL.Path}
	account, elsewhere := errors.AsType[*auth.AccountError](err)
	switch {
	case elsewhere:
		status, data.Why = http.StatusForbidden, "This login is for another account of this machine ("+account.Account.String()+")."
	case !errors.Is(err, weblogin.ErrNotValid):
		status, data.Why = http.StatusServiceUnavailable, "The host cannot record the login: its disk cannot be written."
	case r.URL.Path == httpapi.LoginPath:
		data.Why = "This link was opened before, or it is older than two minutes."
	case secretOf(r) != "":
		data.Why = "Your login has ended."
	}
	if strings.HasPrefix(data.Again, httpapi.LoginPath) || r.Method != http.MethodGet {
		data.Again = "/"
	}
	c.write(w, status, "loggedout.html", layout{Title: "Not logged in", Body: data})
}
