// Package auth turns a credential into a caller. Who calls comes from the
// credential alone, never from an argument.
package auth

import (
	"os"
	"os/user"
	"strconv"
)

// Caller is who makes a call.
type Caller struct {
	// User is the person or account whose files, memory and results the call
	// may see.
	User string
	// Client is the program that calls, as it says itself. It is for people to
	// read and decides nothing.
	Client string
	// Session groups the calls of one conversation.
	Session string
}

// LocalUser returns the user of calls that arrive from this very account:
// configured if it is not empty, else the account's name. An account without
// one, as in many containers, is called by its number, e.g. "uid-1000".
func LocalUser(configured string) string {
	if configured != "" {
		return configured
	}
	if account, err := user.Current(); err == nil {
		return account.Username
	}
	return "uid-" + strconv.Itoa(os.Getuid())
}
