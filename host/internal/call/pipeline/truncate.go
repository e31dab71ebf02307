package pipeline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Bounds for the parts of a result that are not text and cannot be cut.
const (
	maxParts    = 1000
	maxBinary   = 10 * tool.MiB
	maxLabels   = 8 * tool.KiB // URI, name and media type of one part together
	maxMetadata = 64 * tool.KiB
	maxEffects  = 1000
)

// limitStructured replaces a structured result above the budget with an error, since a part of
// the JSON would be invalid. It keeps the other parts of the result and spills the JSON. For a
// caller that shows only text there is no error: [call.asText] has already dropped JSON above
// the tool's budget.
func (p *Pipeline) limitStructured(c *call, result tool.Result) (tool.Result, *spilled) {
	size, budget := len(result.Structured), c.budget()
	if size <= int(budget) || c.Presentation.TextOnly || !json.Valid(result.Structured) { // checkOutput refuses invalid JSON
		return result, nil
	}
	c.dropStream() // the structured result is kept instead
	kept := p.spill(c, result, result.Structured)
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

// truncateText cuts the text of a result to the budget, keeps the whole, marks untrusted text,
// and adds how to read the whole. The whole is the text, or the tool's output if that is
// longer. If the structured result was already spilled, structured takes its place; otherwise
// it is nil.
func (p *Pipeline) truncateText(c *call, result tool.Result, structured *spilled) tool.Result {
	fitted, size, at := truncateContent(result.Content, bounds{
		bytes: c.room(result), lines: cmp.Or(c.Presentation.MaxLines, math.MaxInt), ends: c.entry.RunsCommands(),
	})
	file, streamed := c.endStream(size)
	cut, text := at >= 0, (*spilled)(nil)
	if file != nil {
		if text = p.endSpill(c, result, file); text != nil {
			size = streamed
		}
	}
	if cut && structured == nil && text == nil {
		if text = p.spill(c, result, texts(result.Content)...); text != nil {
			text.cursor = at
		}
	}
	fitted = markText(result, fitted)
	if cut || text != nil {
		fitted = noteCut(fitted, text, size)
	}
	result.Content = fitted
	return cmp.Or(structured, text).annotate(result)
}

// bounds apply to the texts of a result together.
type bounds struct {
	bytes, lines int
	// ends keeps the end of a text as well as its beginning, as suits the output of a command.
	ends bool
}

// fit returns the beginning of a text within the bounds, and its end if ends is set. beginning
// is the length of the former.
func (b bounds) fit(text []byte) (fitted []byte, beginning int) {
	if len(text) <= b.bytes && lines(text) <= b.lines {
		return text, len(text)
	}
	const gap = 64 // for the line between both ends
	if !b.ends || b.bytes <= 2*gap || b.lines < 4 {
		head := firstLines(excerpt.Head(text, b.bytes), b.lines)
		return head, len(head)
	}
	head := firstLines(excerpt.Head(text, (b.bytes-gap)*2/5), b.lines*2/5)
	tail := lastLines(text[len(head):], b.bytes-gap-len(head), b.lines-lines(head)-1)
	left := len(text) - len(head) - len(tail)
	return slices.Concat(head, fmt.Appendf(nil, "\n[%s bytes left out]\n", thousands(left)), tail), len(head)
}

// lines counts the lines of a text.
func lines(text []byte) int {
	n := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// firstLines returns the first lines of a text.
func firstLines(text []byte, most int) []byte {
	for at := range text {
		if text[at] != '\n' {
			continue
		}
		if most--; most <= 0 {
			return text[:at+1]
		}
	}
	return text
}

// lastLines returns the last lines of a text, in at most the given bytes.
func lastLines(text []byte, most, lines int) []byte {
	from := max(len(text)-most, 0)
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	for at := len(text) - 2; at >= from; at-- { // the last line may end with a line break
		if text[at] != '\n' {
			continue
		}
		if lines--; lines <= 0 {
			return text[at+1:]
		}
	}
	return text[from:]
}

// truncateContent cuts the text parts to the bounds. It drops binary parts beyond [maxBinary]
// and all parts beyond [maxParts]. It returns the size of the whole text, and the position of
// the cut in the joined [texts], or -1 if it cut nothing.
func truncateContent(content []tool.Content, b bounds) (fitted []tool.Content, size, at int) {
	text, binary, line, textParts, labels := 0, 0, 0, 0, 0
	for _, part := range content {
		if part.IsText() {
			text += len(part.Data)
			line += lines(part.Data)
			textParts++
		} else {
			binary += len(part.Data)
		}
		labels += labelsOf(part)
	}
	if text+max(labels-freeLabels, 0) <= b.bytes && line <= b.lines && binary <= int(maxBinary) && len(content) <= maxParts && !slices.ContainsFunc(content, unfit) {
		return content, text, -1
	}

	b.ends = b.ends && textParts == 1
	kept := content[:min(len(content), maxParts)]
	fitted = make([]tool.Content, 0, len(kept)+2)
	shown, cut := 0, false
	// Labels, and notes about parts that are left out, get a quarter of the bytes at most.
	// Parts beyond that are only counted.
	if binary > int(maxBinary) {
		labels += len(content) * maxNote
	}
	charged := min(max(labels-freeLabels, 0), b.bytes/4)
	labels = freeLabels + charged
	b.bytes -= charged
	binary = 0
	more := len(content) - len(kept)
	for _, part := range kept {
		size := labelsOf(part)
		switch {
		case unshowable(part):
			part = tool.Text("[a part of the output left out: it is of no kind that can be shown]")
		case !part.IsText() && binary+len(part.Data) > int(maxBinary):
			part = tool.Text(fmt.Sprintf("[%s of %s bytes left out: too large]", part.MediaType, thousands(len(part.Data))))
			size = len(part.Data)
		case size > labels:
		case !part.IsText():
			binary += len(part.Data)
		case cut:
			continue // no text after the cut
		default:
			text := validText(part.Data)
			var beginning int
			part.Data, beginning = b.fit(text)
			cut = beginning < len(text)
			b.bytes, b.lines = b.bytes-beginning, b.lines-lines(part.Data)
			if shown += beginning; !cut {
				shown++ // the line break before the next part
			} else if len(part.Data) == 0 {
				continue
			}
		}
		if size > labels {
			more++
			continue
		}
		labels -= size
		fitted = append(fitted, part)
	}
	if more > 0 {
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

// noteCut adds to the end of a text that it is truncated, and how to read the rest if that is
// kept. A tool that truncated the text itself may already have added the former.
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

// ownNote returns the position of the last line of a text if it is a [truncationNote], or -1.
func ownNote(text []byte) int {
	text = bytes.TrimSuffix(text, []byte("\n"))
	at := bytes.LastIndexByte(text, '\n') + 1
	if !bytes.HasPrefix(text[at:], []byte("[output truncated — original size: ")) || !bytes.HasSuffix(text[at:], []byte(" bytes]")) {
		return -1
	}
	return at
}

// truncationNote returns the line that reports truncated output.
func truncationNote(size int) string {
	return fmt.Sprintf("[output truncated — original size: %s bytes]", thousands(size))
}

// appendNote adds a note as the last line of the last text.
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

// freeLabels is how much of labels and notes does not count as text.
const freeLabels = 256

// maxNote is room for a note about a part that is left out, without its media type.
const maxNote = 72

// labelsOf returns how much text a caller gets of a part besides its data, or instead of it.
func labelsOf(part tool.Content) int {
	if unshowable(part) {
		return maxNote
	}
	return len(part.URI) + len(part.Name) + len(part.MediaType)
}

// unfit reports whether the caller cannot get a part unchanged.
func unfit(part tool.Content) bool {
	return unshowable(part) || part.IsText() && !utf8.Valid(part.Data)
}

// unshowable reports whether a part has an unknown kind, or a label that is too long or not
// UTF-8.
func unshowable(part tool.Content) bool {
	labels := len(part.URI) + len(part.Name) + len(part.MediaType)
	return part.Kind < tool.KindText || part.Kind > tool.KindResource || labels > int(maxLabels) ||
		!utf8.ValidString(part.URI) || !utf8.ValidString(part.Name) || !utf8.ValidString(part.MediaType)
}

// checkFacts checks the effects and the metadata of a result. Its error has code
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

// thousands formats a number like 142,857.
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
