// Package digest writes digests as the host shows, records and compares them.
package digest

import (
	"crypto/sha256"
	"encoding/hex"
)

// Of returns the SHA-256 digest of data, "sha256:" and hexadecimal digits.
func Of[T ~string | ~[]byte](data T) string {
	sum := sha256.Sum256([]byte(data))
	return Format(sum[:])
}

// Format returns a SHA-256 sum as [Of] writes it.
func Format(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }
