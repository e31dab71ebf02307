package auth_test

import (
	"os"
	"os/user"
	"strconv"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
)

func TestLocalUser(t *testing.T) {
	own := "uid-" + strconv.Itoa(os.Getuid()) // an account without a name
	if account, err := user.Current(); err == nil {
		own = account.Username
	}
	for _, tt := range []struct{ configured, want string }{
		{"ada", "ada"},
		{"", own},
	} {
		if got := auth.LocalUser(tt.configured); got != tt.want {
			t.Errorf("LocalUser(%q) = %q, want %q", tt.configured, got, tt.want)
		}
	}
}
