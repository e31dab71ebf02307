package config

import (
	"fmt"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/sdk/tool"
)

// auth reads the auth block.
func (d *decoder) auth(blocks []authBlock) (localUser string, tokens []auth.Token) {
	names := make(map[string]hcl.Range)
	hashes := make(map[string]tokenBlock)
	var approved []word
	for _, block := range blocks {
		if s, ok := d.text(block.LocalUser, "a user name"); ok && s != "" {
			localUser, _ = d.user(block.LocalUser)
			d.checkWorker(block.LocalUser.Expr, localUser)
		}
		for _, token := range block.Tokens {
			d.tokenName(token, names)
			t, approves := d.token(token)
			if token.User != nil && t.User != "" && t.Roles.Has(auth.Agent) {
				d.checkWorker(token.User.Expr, t.User)
			}
			approved = append(approved, approves...)
			if t.SHA256 != "" && auth.Guessable(t.SHA256, t.Name, t.User) {
				d.mistake(token.SHA256.Expr.Range(), "Guessable token",
					"This is the hash of an empty secret or of a common word. Make a token with toolhost token new, and write its sha256 here.")
			}
			if first, taken := hashes[t.SHA256]; taken {
				d.mistake(token.SHA256.Expr.Range(), "Duplicate token",
					"The token %q at %s has the same sha256. Make a token for each: toolhost token new.", first.Name, diag.Place(first.NameRange))
			} else if t.SHA256 != "" {
				hashes[t.SHA256] = token
			}
			tokens = append(tokens, t)
		}
	}
	d.users = []string{auth.LocalUser(localUser)}
	for _, t := range tokens {
		d.users = append(d.users, t.User)
	}
	for _, w := range approved {
		d.warnUser(w.expr, w.text, "it has no calls to approve")
	}
	return localUser, tokens
}

func (d *decoder) tokenName(block tokenBlock, firsts map[string]hcl.Range) {
	if first, taken := firsts[block.Name]; taken {
		d.mistake(block.NameRange, "Duplicate token name",
			"Another token %q is at %s. Give each token its own name.", block.Name, diag.Place(first))
	} else {
		firsts[block.Name] = block.NameRange
	}
	if !tool.ValidPluginName(block.Name) {
		d.mistake(block.NameRange, "Invalid token name",
			"%q cannot be a token's name: expected a lower-case letter, then at most 63 lower-case letters, digits, _ and -.", block.Name)
	}
}

// token reads one token block, and the users whose calls it approves.
func (d *decoder) token(block tokenBlock) (t auth.Token, approves []word) {
	t = auth.Token{Name: block.Name, SHA256: d.tokenHash(block), Roles: d.roles(block), Elicitation: d.flag(block.Elicitation, false), Structured: d.flag(block.Structured, false), Toolsets: d.toolset(block.Toolset), Expires: d.expiry(block), Account: d.tokenAccount(block)}
	if d.absent(block.User) {
		d.mistake(block.Range, "Missing user", "Token %q needs the user whose calls it makes or decides. Add user = \"...\".", block.Name)
	} else {
		t.User, _ = d.user(block.User)
	}
	if block.Approves != nil && t.Roles != 0 && !t.Roles.Has(auth.Approver) {
		d.mistake(block.Approves.NameRange, "Useless approves",
			"Only a token with the role %q decides calls. Remove approves, or give this token that role.", auth.Approver)
	}
	if block.Elicitation != nil && t.Roles != 0 && !t.Roles.Has(auth.Agent) {
		d.mistake(block.Elicitation.NameRange, "Useless elicitation",
			"Only the client of a token with the role %q can ask its user about calls. Remove elicitation.", auth.Agent)
		t.Elicitation = false
	}
	if block.Structured != nil && t.Roles != 0 && !t.Roles.Has(auth.Agent) {
		d.mistake(block.Structured.NameRange, "Useless structured",
			"Only a token with the role %q gets results. Remove structured.", auth.Agent)
	}
	for _, w := range d.words(block.Approves, `a list of users such as ["ci"]`) {
		switch {
		case !auth.ValidUser(w.text):
			d.invalidUser(w.expr)
		case w.text == t.User:
			d.mistake(w.expr.Range(), "Useless user", "An approver always decides calls of its own user. Remove it from the list.")
		case slices.Contains(t.Approves, w.text):
			d.mistake(w.expr.Range(), "Duplicate user", "%s is already in the list.", quote(w.expr, w.text))
		default:
			t.Approves, approves = append(t.Approves, w.text), append(approves, w)
		}
	}
	return t, approves
}

// tokenHash reads the hash of a token's secret.
func (d *decoder) tokenHash(block tokenBlock) string {
	if d.absent(block.SHA256) {
		d.mistake(block.Range, "Missing sha256", "Token %q needs the hash of its secret. Add the sha256 that toolhost token new printed.", block.Name)
		return ""
	}
	s, ok := d.text(block.SHA256, sha256Expected)
	switch {
	case !ok:
		return ""
	case strings.HasPrefix(s, "th_"):
		d.mistake(block.SHA256.Expr.Range(), "A token in the configuration",
			"This is the token itself, which only its owner may know. Make another one with toolhost token new, and write its sha256 here.")
		return ""
	}
	return d.hash(block.SHA256, s)
}

// expiry reads when a token expires: at a time, or at the start of a day in UTC.
func (d *decoder) expiry(block tokenBlock) time.Time {
	const expected = `a day such as "2027-01-01" or a time such as "2027-01-01T08:00:00Z"`
	s, ok := d.text(block.Expires, expected)
	if !ok {
		return time.Time{}
	}
	at, err := dayOrTime(s)
	if err != nil {
		d.mistake(block.Expires.Expr.Range(), "Not a day", "Expected %s for expires, not %s.", expected, quote(block.Expires.Expr, s))
		return time.Time{}
	}
	if !at.After(time.Now()) { // no mistake: the host must still start on the day after
		d.warn(block.Expires.Expr.Range(), warnExpired, "token %q has expired: its requests are refused. Remove it, or make another one with toolhost token new and a later expires.", block.Name)
	}
	return at
}

// dayOrTime parses a time, or a day, which means its start in UTC.
func dayOrTime(s string) (time.Time, error) {
	at, err := time.Parse(time.DateOnly, s)
	if err != nil {
		at, err = time.Parse(time.RFC3339, s)
	}
	return at, err
}

// ParseExpires parses when a token expires: a day or a time, as in the configuration,
// or a duration from now, such as "90d".
func ParseExpires(s string, now time.Time) (time.Time, error) {
	at, err := dayOrTime(s)
	if err == nil && at.After(now) {
		return at, nil
	}
	after, errDuration := parseDuration(s)
	switch {
	case err == nil:
		return time.Time{}, fmt.Errorf("%s has passed: expected a day or a time in the future", s)
	case errDuration != nil || after <= 0:
		return time.Time{}, fmt.Errorf("%q is not a time: expected a duration such as 90d, a day such as 2027-01-01, or a time such as 2027-01-01T08:00:00Z", s)
	}
	return now.Add(after).UTC().Truncate(time.Second), nil
}

// tokenAccount reads the account of the system from which a token may be used over the
// network.
func (d *decoder) tokenAccount(block tokenBlock) auth.Account {
	s, ok := d.text(block.Account, accountExpected)
	if !ok {
		return auth.Account{}
	}
	account, err := LookupAccount(s)
	if err != nil {
		d.mistake(block.Account.Expr.Range(), "Unknown account", "%v.", err)
		return auth.Account{}
	}
	if !auth.TellsAccounts && s != auth.AnyAccount {
		d.mistake(block.Account.Expr.Range(), "Account without effect",
			"This system does not report the account of a connection's client. Remove account, or write %q.", auth.AnyAccount)
	}
	return account
}

const accountExpected = `the name or the number of an account of this machine, or "any",`

// LookupAccount returns an account of this machine by its name or number, or
// [auth.AnyAccount].
func LookupAccount(name string) (auth.Account, error) {
	if name == auth.AnyAccount {
		return auth.Account{Name: name}, nil
	}
	if uid, ok := accountNumber(name); ok {
		return auth.Account{Name: name, UID: uid}, nil
	}
	found, err := user.Lookup(name)
	if err == nil {
		if uid, ok := accountNumber(found.Uid); ok {
			return auth.Account{Name: name, UID: uid}, nil
		}
	}
	return auth.Account{}, fmt.Errorf("this machine has no account %q: expected %s", name, strings.TrimSuffix(accountExpected, ","))
}

// roles reads the roles of a token.
func (d *decoder) roles(block tokenBlock) auth.Roles {
	if d.absent(block.Roles) {
		d.mistake(block.Range, "Missing roles",
			"Token %q needs roles. Add roles = [%q] for a program that calls tools, or [%q] for a person who decides calls.",
			block.Name, auth.Agent, auth.Approver)
		return 0
	}
	return d.listedRoles(block.Roles, "Make two tokens")
}

// listedRoles reads a list of roles. remedy is what helps if they exclude each other.
func (d *decoder) listedRoles(attr *hcl.Attribute, remedy string) auth.Roles {
	known := (auth.Agent | auth.Approver | auth.Admin | auth.Monitor).Names()
	before := len(d.mistakes)
	var names []string
	for _, w := range d.words(attr, `a list of roles such as ["agent"]`) {
		switch {
		case !slices.Contains(known, w.text):
			d.mistake(w.expr.Range(), "Unknown role", "Expected %s, not %s.%s", diag.Words(known), quote(w.expr, w.text), diag.DidYouMean(w.text, known))
		case slices.Contains(names, w.text):
			d.mistake(w.expr.Range(), "Duplicate role", "%s is already in the list.", quote(w.expr, w.text))
		default:
			names = append(names, w.text)
		}
	}
	if len(d.mistakes) > before {
		return 0
	}
	roles, err := auth.ParseRoles(names)
	switch {
	case err != nil:
		d.mistake(attr.Expr.Range(), "Roles that exclude each other", "%s: %v.", remedy, err)
	case roles == 0:
		d.mistake(attr.Expr.Range(), "No roles", "A token without a role allows nothing. Expected at least one of %s.", diag.Words(known))
	}
	return roles
}

// user reads the name of a user.
func (d *decoder) user(attr *hcl.Attribute) (string, bool) {
	s, ok := d.text(attr, "the name of a user")
	if !ok {
		return "", false
	}
	if !auth.ValidUser(s) {
		d.invalidUser(attr.Expr)
		return "", false
	}
	return s, true
}

// CheckUser returns an error if name cannot be the name of a user.
func CheckUser(name string) error {
	if !auth.ValidUser(name) {
		return fmt.Errorf("%q cannot be the name of a user: expected 1 to %d bytes of visible characters, without space around them", name, auth.MaxUser)
	}
	return nil
}

func (d *decoder) invalidUser(expr hcl.Expression) {
	d.mistake(expr.Range(), "Invalid user",
		"Approvers read this name. Expected 1 to %d bytes of visible characters, without space around them.", auth.MaxUser)
}
