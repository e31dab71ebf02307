package approval

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/toolhost/toolhost/internal/digest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// bindingOf returns the digest of the fields that identify a call: an approval is valid
// only for calls with the same binding. Without sensitive files it equals the binding
// of earlier versions.
func bindingOf(user, client, plugin, name, arguments, program, preview, sensitive string) string {
	parts := []string{"toolhost approval 1", user, client, plugin, name, arguments, program, preview}
	if sensitive != "" {
		parts = append(parts, sensitive)
	}
	return digestOfAll(parts...)
}

// binding returns the digest that identifies the record's call.
func (r Record) binding() string {
	return bindingOf(r.User, r.Client, r.Plugin, r.Tool, r.ArgumentsHash, r.Digest, r.PreviewDigest, r.SensitiveDigest)
}

// digestOfAll returns the digest of a list of texts. Each is preceded by its length,
// so that different lists have different digests.
func digestOfAll[T string | []byte](parts ...T) string {
	h := sha256.New()
	var length [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return digest.Format(h.Sum(nil))
}

// sensitiveDigest returns the digest of the sensitive files that a call may use; "" if
// there are none.
func sensitiveDigest(files []string) string {
	if len(files) == 0 {
		return ""
	}
	return digestOfAll(files...)
}

// previewDigest returns the digest of everything that a preview shows, and of the state
// from which it was computed; "" if there is no preview.
func previewDigest(p *tool.Preview) string {
	if p == nil {
		return ""
	}
	parts := [][]byte{[]byte(p.Summary), p.Digest}
	for _, c := range p.Content {
		parts = append(parts, []byte(c.Kind.String()), []byte(c.MediaType), []byte(c.URI), []byte(c.Name), c.Data)
	}
	return digestOfAll(parts...)
}
