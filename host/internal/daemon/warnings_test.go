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
		{"127.0.0.1:7780", auth.ErrNeverTold, "every token counts from each account"},
		{"127.0.0.1:7780", errors.New("no /proc"), `cannot be told here (no /proc): over HTTP no token counts but those with account = "any"`},
	} {
		got := daemon.UntoldAccounts(&config.Config{Listen: tt.listen}, tt.reason)
		if !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("UntoldAccounts(%q, %v) = %q, want %q", tt.listen, tt.reason, got, tt.want)
		}
	}
}
