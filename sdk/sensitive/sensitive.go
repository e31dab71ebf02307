// Package sensitive lists the names of files that usually hold secrets, and matches
// patterns of such names. It examines names only, not files: a copy of a secret under
// another name is an ordinary file.
//
// The host asks a person before a call that names such a file. Plugins leave these
// files out when they search and list.
package sensitive

// Default returns the patterns of names that usually hold secrets, including files of
// the accounts of the machine. See [Parse] for patterns.
func Default() []string {
	return []string{
		".env", ".env.*", ".envrc", "!.env.example", "!.env.sample", "!.env.template",
		"*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx",
		"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk",
		".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker/config.json", ".config/gcloud", ".config/gh",
		".netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd", ".git-credentials", ".vault-token", ".cargo/credentials*",
		"credentials.json", "service-account*.json",
		"/etc/shadow*", "/etc/gshadow*", "/etc/sudoers*", "/etc/ssh/ssh_host_*_key", "/proc/*/environ",
	}
}
