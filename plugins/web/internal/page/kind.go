package page

import (
	"mime"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// Kind is a kind of document.
type Kind string

// The kinds of documents.
const (
	KindHTML   Kind = "html"
	KindText   Kind = "text"
	KindPDF    Kind = "pdf"
	KindBinary Kind = "binary"
)

// maxMediaType bounds the bytes of a media type, which errors and results show.
const maxMediaType = 127

// kindOf returns the kind and media type of a document: those of its Content-Type, or if
// that is missing or generic, those of its content.
func kindOf(body []byte, contentType string) (Kind, string) {
	told, _, err := mime.ParseMediaType(contentType)
	if err != nil || len(told) > maxMediaType {
		told = ""
	}
	told = strings.ToLower(told)
	switch told {
	case "text/html", "application/xhtml+xml":
		return KindHTML, told
	case "application/pdf":
		return KindPDF, told
	case "", "text/plain", "application/octet-stream", "binary/octet-stream", "unknown/unknown":
		return kindFound(body, told)
	}
	if isText(told) {
		return KindText, told
	}
	return KindBinary, told
}

// kindFound returns the kind and media type that the content of a document has.
func kindFound(body []byte, told string) (Kind, string) {
	found := mimetype.Detect(body)
	name, _, _ := strings.Cut(found.String(), ";")
	switch {
	case found.Is("application/pdf"):
		return KindPDF, name
	case found.Is("text/html") && told != "text/plain":
		return KindHTML, name
	case told == "text/plain" && found.Is("text/plain"):
		return KindText, told
	}
	for parent := found; parent != nil; parent = parent.Parent() {
		if parent.Is("text/plain") {
			if told == "text/plain" {
				name = told
			}
			return KindText, name
		}
	}
	if len(body) == 0 {
		return KindText, "text/plain"
	}
	return KindBinary, name
}

// isText reports whether documents of a media type are text.
func isText(mediaType string) bool {
	if strings.HasPrefix(mediaType, "text/") || strings.HasSuffix(mediaType, "+json") || strings.HasSuffix(mediaType, "+xml") {
		return !strings.HasPrefix(mediaType, "image/") || mediaType == "image/svg+xml"
	}
	switch mediaType {
	case "application/json", "application/xml", "application/javascript", "application/ecmascript", "application/x-javascript",
		"application/x-ndjson", "application/jsonl", "application/yaml", "application/x-yaml", "application/toml", "application/sql",
		"application/x-sh", "application/x-www-form-urlencoded", "application/graphql", "message/rfc822", "message/http":
		return true
	}
	return false
}
