package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"

	"github.com/toolhost/toolhost/sdk"
)

type secretName struct {
	Name string `json:"name" jsonschema:"the name of the secret"`
}

// digestOfSecret returns the digest of a secret, and logs the secret.
func digestOfSecret(ctx context.Context, c *sdk.Call, args secretName) (string, error) {
	value, err := c.Secret(ctx, args.Name)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "the secret is %s\n", value)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(value))), nil
}
