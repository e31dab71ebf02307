package textfile

import (
	"github.com/gabriel-vasile/mimetype"
)

// MediaType returns what a file is by its beginning. What has several names has
// the one that clients know, and a PNG that moves is one all the same.
func MediaType(head []byte) string {
	switch found := mimetype.Detect(head).String(); found {
	case "image/apng", "image/vnd.mozilla.apng":
		return "image/png"
	case "audio/x-m4a":
		return "audio/mp4"
	default:
		return found
	}
}

// IsMedia reports whether a model may see or hear the type itself.
func IsMedia(mediaType string) bool {
	switch mediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "audio/mpeg", "audio/wav", "audio/ogg", "audio/flac", "audio/mp4":
		return true
	default:
		return false
	}
}
