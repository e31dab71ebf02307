package pipeline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Bounds of the parts of a result that are not text and cannot be cut.
const (
	maxParts    = 1000
	maxBinary   = 10 * tool.MiB
	maxLabels   = 8 * tool.KiB // URI, name and media type of one part together
	maxMetadata = 64 * tool.KiB
	maxEffects  = 1000
)

// limitStructured replaces a structured result above the budget by an error, since
// a part of it is not valid. It keeps the other parts of the result, and spills
// the text of the structured one.
func (p *Pipeline) limitStructured(c *call, result tool.Result) (tool.Result, *spilled) {
	size, budget := len(result.Structured), c.entry.MaxOutput
	if size <= int(budget) || !json.Valid(result.Structured) { // the check of the output refuses invalid JSON
		return result, nil
	}
	c.dropStream() // the structured result is kept instead
	kept := p.spill(c, result.Structured)
	hint := "ask for less in one call"
	if kept != nil {
		hint = "read it as text with " + kept.read() + ", or " + hint
	}
	result.Structured = nil
	result.Error = tool.Errorf(tool.ResourceExhausted,
		"the tool's structured result has %s bytes, more than its budget of %s", thousands(size), budget).
		WithHint("%s", hint)
	return result, kept
}

// truncateText cuts the text of a result to the budget, spills the whole, and adds
// how to read it. The whole is the text, or the tool's output while it ran if that
// is longer. structured is the structured result if that was spilled already,
// instead of both; else nil.
func (p *Pipeline) truncateText(c *call, result tool.Result, structured *spilled) tool.Result {
	fitted, size, at := truncateContent(result.Content, int(c.entry.MaxOutput))
	file, streamed := c.endStream(size)
	cut, text := at >= 0, (*spilled)(nil)
	if file != nil {
		if text = p.endSpill(c, file); text != nil {
			size = streamed
		}
	}
	if cut && structured == nil && text == nil {
		if text = p.spill(c, texts(result.Content)...); text != nil {
			text.cursor = at
		}
	}
	if cut || text != nil {
		fitted = noteCut(fitted, text, size)
	}
	result.Content = fitted
	return cmp.Or(structured, text).annotate(result)
}

// truncateContent cuts the text parts to budget bytes together, and drops binary
// parts beyond [maxBinary] and all parts beyond [maxParts]. It returns the size of
// the whole text, and the position of the cut in [texts] joined by line breaks, or
// -1 if it cut nothing.
func truncateContent(content []tool.Content, budget int) (fitted []tool.Content, size, at int) {
	text, binary := 0, 0
	for _, part := range content {
		if part.IsText() {
			text += len(part.Data)
		} else {
			binary += len(part.Data)
		}
	}
	if text <= budget && binary <= int(maxBinary) && len(content) <= maxParts && !slices.ContainsFunc(content, unfit) {
		return content, text, -1
	}

	kept := content[:min(len(content), maxParts)]
	fitted = make([]tool.Content, 0, len(kept)+2)
	binary = 0
	left, shown, cut := budget, 0, false
	for _, part := range kept {
		switch {
		case unshowable(part):
			part = tool.Text("[a part of the output left out: it is of no kind that can be shown]")
		case !part.IsText() && binary+len(part.Data) > int(maxBinary):
			part = tool.Text(fmt.Sprintf("[%s of %s bytes left out: too large]", part.MediaType, thousands(len(part.Data))))
		case !part.IsText():
			binary += len(part.Data)
		case cut:
			continue // no text follows the cut
		default:
			text := validText(part.Data)
			part.Data, cut = excerpt.Head(text, left), len(text) > left
			left -= len(part.Data)
			if shown += len(part.Data); !cut {
				shown++ // the line break before the next part
			} else if len(part.Data) == 0 {
				continue
			}
		}
		fitted = append(fitted, part)
	}
	if more := len(content) - len(kept); more > 0 {
		fitted = append(fitted, tool.Text(fmt.Sprintf("[%s parts of the output left out: too many]", thousands(more))))
	}
	if !cut {
		shown = -1
	}
	return fitted, text, shown
}

// texts returns the text parts of a result.
func texts(content []tool.Content) [][]byte {
	var parts [][]byte
	for _, part := range content {
		if part.IsText() && !unshowable(part) {
			parts = append(parts, validText(part.Data))
		}
	}
	return parts
}

// noteCut adds to the end of a text that it is truncated, and how to read the rest
// if that is kept. A tool that has truncated the text itself may have added the
// former already.
func noteCut(content []tool.Content, kept *spilled, size int) []tool.Content {
	if i := len(content) - 1; i >= 0 && content[i].Kind == tool.KindText {
		if at := ownNote(content[i].Data); at >= 0 {
			content = slices.Clone(content)
			content[i].Data = slices.Concat(content[i].Data[:at], []byte(kept.note()), content[i].Data[at:])
			return content
		}
	}
	return appendNote(content, kept.note()+truncationNote(size))
}

// ownNote returns the position of the last line of a text if that line is a
// [truncationNote], or -1.
func ownNote(text []byte) int {
	text = bytes.TrimSuffix(text, []byte("\n"))
	at := bytes.LastIndexByte(text, '\n') + 1
	if !bytes.HasPrefix(text[at:], []byte("[output truncated — original size: ")) || !bytes.HasSuffix(text[at:], []byte(" bytes]")) {
		return -1
	}
	return at
}

// truncationNote returns the line by which callers recognize truncated output.
func truncationNote(size int) string {
	return fmt.Sprintf("[output truncated — original size: %s bytes]", thousands(size))
}

// appendNote adds a note as a line of its own to the end of the last text.
func appendNote(content []tool.Content, note string) []tool.Content {
	content = slices.Clone(content)
	for i, part := range slices.Backward(content) {
		if part.Kind != tool.KindText {
			continue
		}
		data := slices.Clone(part.Data)
		if len(data) > 0 && data[len(data)-1] != '\n' {
			data = append(data, '\n')
		}
		content[i].Data = append(data, note...)
		return content
	}
	return append(content, tool.Text(note))
}

// validText returns text with U+FFFD in place of bytes that are not UTF-8.
func validText(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	return bytes.ToValidUTF8(text, []byte("\uFFFD"))
}

// unfit reports whether the caller cannot get a part unchanged.
func unfit(part tool.Content) bool {
	return unshowable(part) || part.IsText() && !utf8.Valid(part.Data)
}

// unshowable reports whether a part has an unknown kind, or a label that is too
// long or not UTF-8.
func unshowable(part tool.Content) bool {
	labels := len(part.URI) + len(part.Name) + len(part.MediaType)
	return part.Kind < tool.KindText || part.Kind > tool.KindResource || labels > int(maxLabels) ||
		!utf8.ValidString(part.URI) || !utf8.ValidString(part.Name) || !utf8.ValidString(part.MediaType)
}

// checkFacts checks the effects and the metadata of a result. The error has code
// [tool.OutputInvalid].
func checkFacts(result tool.Result) *tool.Error {
	if len(result.Effects) > maxEffects {
		return tool.Errorf(tool.OutputInvalid, "the tool reports %d effects, more than the %d that are allowed",
			len(result.Effects), maxEffects)
	}
	if len(result.Metadata) == 0 {
		return nil
	}
	text, err := json.Marshal(result.Metadata)
	if err != nil {
		return tool.Errorf(tool.OutputInvalid, "the tool's metadata cannot be written as JSON").WithCause(err)
	}
	if len(text) > int(maxMetadata) {
		return tool.Errorf(tool.OutputInvalid, "the tool's metadata has %s bytes, more than the %s that are allowed",
			thousands(len(text)), maxMetadata)
	}
	return nil
}

// thousands formats a number as in 142,857.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	var b strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}
