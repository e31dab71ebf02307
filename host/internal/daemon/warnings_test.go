package daemon_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/daemon"
)

func TestUntoldAccounts(t *testing.T) {
	for _, tt := range []struct {
		listen string
		reason error
		want   string
	}{
		{"127.0.0.1:7780", nil, ""},
		{"", auth.ErrNeverTold, ""},
		{"127.0.0.1:7780", auth.ErrNeverTold, "every account of this machine may use every token"},
		{"127.0.0.1:7780", errors.New("no /proc"), `is not known here (no /proc): over HTTP only tokens with account = "any" are valid`},
	} {
		got := daemon.UntoldAccounts(&config.Config{Listen: tt.listen}, tt.reason)
		if !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("UntoldAccounts(%q, %v) = %q, want %q", tt.listen, tt.reason, got, tt.want)
		}
	}
}
