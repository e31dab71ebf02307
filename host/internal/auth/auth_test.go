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

func TestMayApprove(t *testing.T) {
	token := auth.Caller{User: "bea", Roles: auth.Approver, Approves: []string{"ada@corp"}}
	issued := auth.Caller{User: "bea@corp", Roles: auth.Approver, Issuer: "corp"}
	for _, tt := range []struct {
		caller auth.Caller
		user   string
		want   bool
	}{
		{token, "bea", true},
		{token, "ada@corp", true},
		{token, "bea@corp", false},
		{auth.Caller{User: "bea", Roles: auth.Admin}, "bea", false},
		{issued, "ada@corp", true},
		{issued, "bea@corp", false},
		{issued, "ada", false},
		{issued, "ada@partner", false},
		{issued, "ada@corp@partner", false},
		{issued, "corp", false},
		{auth.Caller{User: "bea@corp", Roles: auth.Agent, Issuer: "corp"}, "ada@corp", false},
	} {
		if got := tt.caller.MayApprove(tt.user); got != tt.want {
			t.Errorf("%+v: MayApprove(%q) = %v, want %v", tt.caller, tt.user, got, tt.want)
		}
	}
}

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.8.9.1": true, "::1": true, "::ffff:127.0.0.1": true,
		"localhost.example.com": false, "127.0.0.1.example.com": false, "10.0.0.1": false, "0.0.0.0": false, "::": false, "[::1]": false, "": false,
	} {
		if got := auth.IsLoopback(host); got != want {
			t.Errorf("IsLoopback(%q) = %v, want %v", host, got, want)
		}
	}
}
