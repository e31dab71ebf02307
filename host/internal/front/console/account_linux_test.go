package console_test

import (
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
)

// nobody is the account that a cookie has leaked to.
const nobody = 65534

// TestCookieOfAnotherAccount: a cookie is of no use to another account of the machine. As root, another
// account sends it; otherwise the token is moved to another account.
func TestCookieOfAnotherAccount(t *testing.T) {
	t.Parallel()
	if err := auth.CheckOrigins(); err != nil {
		t.Fatalf("this kernel does not tell the accounts of connections: %v", err)
	}
	h := start(t, httpapitest.Options{})
	b := loggedIn(t, h, h.Approver)
	b.get("/").want(t, http.StatusOK)
	if os.Geteuid() != 0 {
		tokens := slices.Clone(h.TokenList)
		i := slices.IndexFunc(tokens, func(one auth.Token) bool { return one.Name == "approver" })
		tokens[i].Account = auth.Account{Name: "nobody", UID: nobody}
		if err := h.Tokens.Replace(tokens); err != nil {
			t.Fatal(err)
		}
		b.get("/").want(t, http.StatusForbidden, "another account")
		return
	}
	cookie := b.http.Jar.Cookies(mustParse(t, h.URL))[0]
	status := func(uid uint32) string {
		cmd := exec.CommandContext(t.Context(), "curl", "-s", "--noproxy", "*", "-o", "/dev/null", "-w", "%{http_code}", "-b", cookie.Name+"="+cookie.Value, h.URL+"/")
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	if got := status(0); got != "200" {
		t.Errorf("control: the same account gets %s", got)
	}
	if got := status(nobody); got != "403" {
		t.Errorf("another account gets %s, want 403", got)
	}
}
