package page

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// decode returns the text of a document and the name of its encoding. The encoding is the
// one of the Content-Type, of the document's own declaration, or a guess, in this order.
// Invalid bytes become U+FFFD.
func decode(body []byte, contentType string, isHTML bool) (string, string) {
	head := body
	if !isHTML {
		head = nil // only HTML has meta elements
	}
	encoding, name, certain := charset.DetermineEncoding(head[:min(len(head), 1024)], contentType)
	marked := bytes.HasPrefix(body, []byte("\xEF\xBB\xBF"))
	if name == "utf-8" || marked || !certain && utf8.Valid(body) {
		return strings.ToValidUTF8(string(bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF"))), "\uFFFD"), "utf-8"
	}
	if encoding == nil || name == "replacement" {
		return strings.ToValidUTF8(string(body), "\uFFFD"), "utf-8"
	}
	if !certain && (bytes.HasPrefix(body, []byte("\xFE\xFF")) || bytes.HasPrefix(body, []byte("\xFF\xFE"))) {
		encoding, name, _ = charset.DetermineEncoding(body[:min(len(body), 1024)], "")
	}
	text, err := encoding.NewDecoder().Bytes(body)
	if err != nil {
		return strings.ToValidUTF8(string(body), "\uFFFD"), "utf-8"
	}
	return string(text), name
}
