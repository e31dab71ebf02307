package auth_test

import (
	"os/user"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
)

func TestLocalUser(t *testing.T) {
	account, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ configured, want string }{
		{"ada", "ada"},
		{"", account.Username},
	} {
		if got, err := auth.LocalUser(tt.configured); got != tt.want || err != nil {
			t.Errorf("LocalUser(%q) = %q, %v; want %q", tt.configured, got, err, tt.want)
		}
	}
}
