package auth

import (
	"errors"
	"fmt"
	"os"
	"strconv"
)

// AnyAccount is the name of the [Account] that every account is.
const AnyAccount = "any"

// Account is the account of the system from which a token may be used over the
// network. The zero value is the account of the host.
//
// Root counts as every account, since it can become each.
type Account struct {
	// Name is what the configuration calls it: "" for the account of the host,
	// [AnyAccount] for any.
	Name string
	// UID is the number of an account with another name.
	UID int
}

// uid returns the number of the account, which is not any.
func (a Account) uid() int {
	if a.Name == "" {
		return os.Geteuid()
	}
	return a.UID
}

// String implements [fmt.Stringer].
func (a Account) String() string {
	switch number := strconv.Itoa(a.uid()); a.Name {
	case "":
		return "the host's, uid " + number
	case AnyAccount:
		return AnyAccount
	case number:
		return "uid " + number
	default:
		return a.Name + ", uid " + number
	}
}

// Origin says which account is at the other end of a connection. The error is
// [ErrNeverTold] where the system never tells. A nil Origin is that of a connection on
// which every token counts, whomever it is for.
type Origin func() (uid int, err error)

// ErrNeverTold says that the system tells no account at the other end of a connection, of
// no connection. Errors of a system that does tell are never this one.
var ErrNeverTold = errors.New("this system does not tell accounts")

// AccountError says that a token was used from an account that may not use it.
type AccountError struct {
	// Token is its name.
	Token string
	// Account is the one that it is for.
	Account Account
	// UID is the number of the one that has used it; -1: not known.
	UID int
	// Cause is why it is not known.
	Cause error
}

// Error implements error.
func (e *AccountError) Error() string {
	if e.UID < 0 {
		return fmt.Sprintf("the token %q is for one account (%s), and it cannot be told which one sent it: %v", e.Token, e.Account, e.Cause)
	}
	return fmt.Sprintf("the token %q is for another account (%s): it was sent by uid %d", e.Token, e.Account, e.UID)
}

// Unwrap returns why the account is not known, or nil.
func (e *AccountError) Unwrap() error { return e.Cause }

// check returns a [*AccountError] if a token for the account may not be used from
// there. On a system that never tells, it may; on one that tells, it may not while the
// account cannot be learned.
func (a Account) check(token string, from Origin) error {
	if a.Name == AnyAccount || from == nil {
		return nil
	}
	uid, err := from()
	switch {
	case errors.Is(err, ErrNeverTold):
		return nil
	case err != nil:
		return &AccountError{Token: token, Account: a, UID: -1, Cause: err}
	case uid == 0 || uid == a.uid():
		return nil
	}
	return &AccountError{Token: token, Account: a, UID: uid}
}
