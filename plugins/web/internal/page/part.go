package page

import (
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Part says which part of a text is wanted.
type Part struct {
	// Start is its first character, counted from 0, and Length how many it has at
	// most; 0 is no bound.
	Start  int `json:"start"`
	Length int `json:"length"`
	// Bytes is how many bytes it has at most; 0 is no bound.
	Bytes int `json:"bytes"`
}

// of returns the part of a text, the character after its last one, and how many
// the text has.
func (p Part) of(text string) (part string, end, total int, err error) {
	total = utf8.RuneCountInString(text)
	if p.Start > 0 && p.Start >= total {
		return "", 0, total, tool.Errorf(tool.InvalidArgument, "start_index is %d, but the text has %d characters", p.Start, total).
			WithHint("leave start_index out to begin at the start")
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
