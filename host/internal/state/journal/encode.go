package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// encode returns the body of a row for r, without the secrets that redact finds. redact
// may be nil.
func encode(r Record, redact func(string) string) []byte {
	r.prepare()
	if redact == nil {
		r.mapTexts(cut)
		return r.stored()
	}
	if !r.long() {
		body := r.stored()
		// Unless JSON escapes something, a secret is found in the whole row as in its
		// parts. Nearly every row ends here.
		if text := string(body); bytes.IndexByte(body, '\\') < 0 && redact(text) == text {
			return body
		}
	}
	r.mapTexts(func(text string) string { return cut(redact(text)) })
	if len(r.Arguments) > 0 {
		r.Arguments = redactJSON(r.Arguments, redact)
	}
	return r.stored()
}

// prepare drops what the journal sets itself, a tier that is not one, and arguments that
// are too large.
func (r *Record) prepare() {
	r.ArgumentsSize = 0
	if r.Tier < tool.ReadOnly || r.Tier > tool.Privileged {
		r.Tier = 0
	}
	if tool.ByteSize(len(r.Arguments)) > MaxArguments {
		if r.ArgumentsHash == "" {
			r.ArgumentsHash = digest(sha256.Sum256(r.Arguments)).String()
		}
		r.ArgumentsSize = int64(len(r.Arguments))
		r.Arguments = nil
	}
	if len(r.Arguments) > 0 && !json.Valid(r.Arguments) {
		r.Arguments = quoted(string(r.Arguments))
	}
}

// texts lists the texts of r that are stored.
func (r *Record) texts() []*string {
	return []*string{
		&r.Tool, &r.Plugin, &r.Digest, &r.User, &r.Client, &r.Session, &r.ArgumentsHash, &r.Verdict, &r.Rule, &r.Where,
		&r.ApprovedBy, &r.Approval, &r.Approver, &r.Via, &r.Status, &r.Code, &r.Error, &r.ResultDigest, &r.Notice,
	}
}

func (r *Record) mapTexts(f func(string) string) {
	for _, text := range r.texts() {
		if *text != "" {
			*text = f(*text)
		}
	}
}

// long reports whether a text of r must be cut.
func (r *Record) long() bool {
	for _, text := range r.texts() {
		if len(*text) > maxText {
			return true
		}
	}
	return false
}

// redactJSON returns valid JSON with redact applied to each string and number
// in it; a number that changes becomes a string.
func redactJSON(data []byte, redact func(string) string) []byte {
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); {
		end := i + 1
		switch c := data[i]; {
		case c == '"':
			for data[end] != '"' {
				if data[end] == '\\' {
					end++
				}
				end++
			}
			end++
			var text string
			if err := json.Unmarshal(data[i:end], &text); err != nil { // the whole is valid
				text = string(data[i:end])
			}
			out = appendRedacted(out, data[i:end], text, redact)
		case c == '-' || c >= '0' && c <= '9':
			for end < len(data) && strings.IndexByte("+-.eE0123456789", data[end]) >= 0 {
				end++
			}
			out = appendRedacted(out, data[i:end], string(data[i:end]), redact)
		default:
			out = append(out, c)
		}
		i = end
	}
	return out
}

// appendRedacted appends raw, whose meaning is text, or text redacted. Short
// secrets are recognised by the quotes around them.
func appendRedacted(out, raw []byte, text string, redact func(string) string) []byte {
	inQuotes := strconv.Quote(text)
	if clean := redact(text); clean != text {
		return append(out, quoted(clean)...)
	}
	if clean := redact(inQuotes); clean != inQuotes {
		return append(out, quoted(clean)...)
	}
	return append(out, raw...)
}

// quoted returns text as a JSON string.
func quoted(text string) []byte {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can always be encoded
	}
	return b
}
