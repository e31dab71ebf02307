package console_test

import (
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
)

// isTold reports whether this system tells the accounts of connections, and the test is not of root's,
// who may use every token.
func isTold(t *testing.T) bool {
	t.Helper()
	return auth.CheckOrigins() == nil && (auth.Account{}).String() != "the host's, uid 0"
}
