// Package sensitive says which names of files usually hold secrets, and reads
// patterns of such names. It looks at names alone, never at files: a secret that
// was copied under another name is an ordinary file.
//
// The host asks a person before a call that names such a file; plugins leave these
// files out of what they search and list.
package sensitive

// Default returns the patterns of names that usually hold secrets, those of
// accounts of the machine included. See [Parse] for what a pattern means.
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
