package roots

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
func CheckSecrets(texts []string) error {
	_, err := parsePatterns("secret", texts)
	return err
}
