package auth

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// AnyAccount is the name of the [Account] that includes every account.
const AnyAccount = "any"

// Account is the system account that may use a token over the network. The zero value is the
// host's own account.
//
// Root may use every token, since it can become any account.
type Account struct {
	// Name is the name in the configuration: "" for the account of the host, [AnyAccount]
	// for any.
	Name string
	// UID is the number of the account if Name is another name.
	UID int
}

// uid returns the number of an account other than [AnyAccount].
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

// IsLoopback reports whether a host, as in a URL but without brackets, is localhost or a loopback
// address.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// CheckAddress parses a URL that the host may send requests with credentials to: https, or http at a
// loopback address, without a user or a password.
func CheckAddress(text string) (*url.URL, error) {
	parsed, err := url.Parse(text)
	switch {
	case err != nil || parsed.Hostname() == "":
		return nil, errors.New("it is not a URL with a host")
	case parsed.User != nil:
		return nil, errors.New("a URL with a user or a password is not accepted")
	case parsed.Scheme == "https", parsed.Scheme == "http" && IsLoopback(parsed.Hostname()):
		return parsed, nil
	}
	return nil, errors.New("only https is accepted, and http at a loopback address")
}

// Origin returns the account at the other end of a connection. The error is [ErrNeverTold] on
// a system that never reports it. A nil Origin allows every token, whatever its account.
type Origin func() (uid int, err error)

// ConnOrigin returns the account that opened a TCP connection from a loopback address. The error
// is [ErrNeverTold] on a system that never reports it. A connection from any other address may
// come from another machine, whatever the system reports: it has no account of this one.
func ConnOrigin(conn net.Conn) (uid int, err error) {
	from, ok := conn.RemoteAddr().(*net.TCPAddr)
	switch {
	case !ok:
		return 0, fmt.Errorf("the connection is %s, not tcp", conn.RemoteAddr().Network())
	case !from.AddrPort().Addr().Unmap().IsLoopback():
		return 0, fmt.Errorf("it came from %s, which is not a loopback address of this machine", from.IP)
	}
	return TCPOrigin(conn)
}

// ErrNeverTold means that this system reports the account of no connection.
var ErrNeverTold = errors.New("this system does not report the accounts of connections")

// AccountError means that a token was used from an account that may not use it.
type AccountError struct {
	// Token is the name of the token.
	Token string
	// Account is the account that may use it.
	Account Account
	// UID is the number of the account that used it, or -1 if it is not known.
	UID int
	// Cause says why the account is not known.
	Cause error
}

// Error implements error.
func (e *AccountError) Error() string {
	if e.UID < 0 {
		return fmt.Sprintf("the token %q is for one account (%s), and the account that sent it is not known: %v", e.Token, e.Account, e.Cause)
	}
	return fmt.Sprintf("the token %q is for another account (%s): it was sent by uid %d", e.Token, e.Account, e.UID)
}

// Unwrap returns Cause.
func (e *AccountError) Unwrap() error { return e.Cause }

// check returns an [*AccountError] if a token for account a may not be used from there. If the
// account is not known, it allows the token only on a system that never reports accounts.
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
