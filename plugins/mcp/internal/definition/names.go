package definition

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
)

// maxName is the length of a tool's name, which every model API accepts.
const maxName = 64

// hashSize is the number of hexadecimal digits that keep shortened names apart.
const hashSize = 8

// Name returns the name under which the host offers a server's tool: lower case, with the prefix
// and only the letters, digits and underscores that the plugin contract allows. readFile becomes
// read_file. A name that loses more than its case and punctuation ends with a hash of the original,
// so that it stays the same and differs from its neighbors.
func Name(prefix, original string) string {
	name, exact := plain(original)
	switch {
	case prefix != "":
		name = prefix + "_" + name
	case name == "" || name[0] < 'a' || name[0] > 'z':
		name = "tool_" + name
	}
	if exact && len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(original))
	most := maxName - hashSize - len("_")
	return strings.TrimRight(name[:min(len(name), most)], "_") + "_" + hex.EncodeToString(sum[:])[:hashSize]
}

// plain maps a name to lower-case letters, digits and underscores. It reports whether the name has
// only characters that names of tools usually have, and one of them is a letter or a digit.
func plain(original string) (name string, exact bool) {
	var b strings.Builder
	exact = strings.IndexFunc(original, ascii) >= 0
	before := ' '
	for _, c := range original {
		switch {
		case c >= 'A' && c <= 'Z':
			if before >= 'a' && before <= 'z' || before >= '0' && before <= '9' {
				b.WriteByte('_')
			}
			b.WriteRune(c - 'A' + 'a')
		case ascii(c):
			b.WriteRune(c)
		case strings.ContainsRune("_-./: ", c):
			b.WriteByte('_')
		default:
			b.WriteByte('_')
			exact = false
		}
		before = c
		if b.Len() > maxName {
			return b.String(), exact && len(original) <= maxName
		}
	}
	return b.String(), exact
}

// ascii reports whether c is an ASCII letter or digit.
func ascii(c rune) bool {
	return c <= unicode.MaxASCII && (unicode.IsLetter(c) || unicode.IsDigit(c))
}
