package roots

import (
	"fmt"
	"path"
	"strings"
)

// DefaultSecrets returns the patterns of names that usually hold secrets.
//
// A pattern is compared with the parts of a name, ignoring case, wherever they
// stand in it: ".ssh" covers ".ssh" in every folder and everything below it,
// and ".docker/config.json" the file in every ".docker". A part may hold the
// wildcards of [path.Match]. A pattern that begins with "!" takes back what an
// earlier one covered.
func DefaultSecrets() []string {
	return []string{
		".env", ".env.*", "!.env.example", "!.env.sample", "!.env.template",
		"*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx",
		"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
		".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker/config.json", ".config/gcloud", ".config/gh",
		".netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd", ".git-credentials", ".vault-token", ".cargo/credentials*",
		"credentials.json", "service-account*.json",
	}
}

// CheckSecrets reports, for an operator, the first pattern that [Open] would
// refuse.
func CheckSecrets(patterns []string) error {
	_, err := parseSecrets(patterns)
	return err
}

// secrets are parsed patterns; the last one that matches counts.
type secrets []secretPattern

type secretPattern struct {
	parts    []string
	takeBack bool
}

func parseSecrets(patterns []string) (secrets, error) {
	var s secrets
	for _, text := range patterns {
		glob, takeBack := strings.CutPrefix(text, "!")
		glob = strings.ToLower(strings.Trim(glob, "/"))
		parts := strings.Split(glob, "/")
		for _, part := range parts {
			if _, err := path.Match(part, ""); err != nil || part == "" {
				return nil, fmt.Errorf("secret pattern %q is not a glob, expected names with *, ? and [a-z] such as \"*.key\"", text)
			}
		}
		s = append(s, secretPattern{parts, takeBack})
	}
	return s, nil
}

// match reports whether rel, or a directory that it is in, is a secret.
func (s secrets) match(rel string) bool {
	parts := strings.Split(strings.ToLower(rel), "/")
	secret := false
	for _, p := range s {
		if p.matchAnywhere(parts) {
			secret = !p.takeBack
		}
	}
	return secret
}

func (p secretPattern) matchAnywhere(parts []string) bool {
	for i := range len(parts) - len(p.parts) + 1 {
		if p.matchAt(parts[i:]) {
			return true
		}
	}
	return false
}

func (p secretPattern) matchAt(parts []string) bool {
	for i, glob := range p.parts {
		if ok, err := path.Match(glob, parts[i]); err != nil || !ok {
			return false
		}
	}
	return true
}
