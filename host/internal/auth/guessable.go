package auth

import (
	"slices"
	"strings"
)

// MinSecret is how many bytes the secret of a token has at least. A shorter one
// never counts, whatever digest a configuration has.
const MinSecret = 20

// Guessable reports whether a digest, in lower case, is that of a secret that
// anybody would try: of nothing, of a common word, or of one of the names. Most
// short secrets cannot be told by their digest; [MinSecret] keeps them out.
func Guessable(sha256hex string, names ...string) bool {
	words := append(slices.Clone(names), "")
	words = append(words, strings.Fields(commonSecrets)...)
	return slices.ContainsFunc(words, func(word string) bool {
		return Digest(word) == sha256hex || Digest(word+"\n") == sha256hex // as `echo word | sha256sum` prints it
	})
}

// commonSecrets are words that stand for a secret in examples and in haste.
const commonSecrets = `
	0 00000000 1 11111111 123 1234 12345 123456 1234567 12345678 123456789 1234567890 a aaaa abc abc123 access
	admin administrator agent api apikey api-key approver asdf bearer bob changeit changeme change-me
	default demo dev dummy example foo foobar hello hunter2 key letmein local localhost login master
	mytoken none null pass passw0rd password Password password1 Password1 placeholder qwerty root s3cr3t sample
	secret Secret secret123 secretkey sesame setme supersecret swordfish temp test test123 tester testing
	testtoken th_ TODO todo token Token toolhost toor trustno1 undefined user welcome x xxx xxxx xxxxxxxx
	xyz your-secret your-token yourtoken
`
