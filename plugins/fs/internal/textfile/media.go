package textfile

import (
	"github.com/gabriel-vasile/mimetype"
)

// MediaType detects the media type of a file from its head. It returns the names that
// clients know: an animated PNG is image/png.
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

// IsMedia reports whether a model can see or hear files of the media type.
func IsMedia(mediaType string) bool {
	switch mediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "audio/mpeg", "audio/wav", "audio/ogg", "audio/flac", "audio/mp4":
		return true
	default:
		return false
	}
}
