package page

import (
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Part is a part of a text.
type Part struct {
	// Start is the index of the first character, from 0. Length is the maximum number of
	// characters; 0 is no limit.
	Start  int `json:"start"`
	Length int `json:"length"`
	// Bytes is the maximum number of bytes; 0 is no limit.
	Bytes int `json:"bytes"`
}

// of returns the part of a text, the index of the character after it, and the number of
// characters of the text.
func (p Part) of(text string) (part string, end, total int, err error) {
	total = utf8.RuneCountInString(text)
	if p.Start > 0 && p.Start >= total {
		return "", 0, total, tool.Errorf(tool.InvalidArgument, "cursor is %d, but the text has %d characters", p.Start, total).
			WithHint("omit cursor to begin at the start")
	}
	from, to, end := len(text), len(text), 0
	for i, c := range text {
		if end == p.Start {
			from = i
		}
		if end >= p.Start && (p.Length > 0 && end-p.Start == p.Length || p.Bytes > 0 && i-from+utf8.RuneLen(c) > p.Bytes && i > from) {
			to = i
			break
		}
		end++
	}
	return strings.Clone(text[min(from, to):to]), end, total, nil
}
