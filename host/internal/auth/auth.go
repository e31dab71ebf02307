// Package auth turns a credential into a caller. Who calls comes from the
// credential alone, never from an argument.
package auth

import (
	"fmt"
	"os/user"
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
// configured if it is not empty, else the account's name.
func LocalUser(configured string) (string, error) {
	if configured != "" {
		return configured, nil
	}
	account, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("name of this account: %w", err)
	}
	return account.Username, nil
}
