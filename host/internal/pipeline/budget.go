package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Bounds of what is not text, and so cannot be cut.
const (
	maxParts    = 1000
	maxBinary   = 10 * tool.MiB
	maxLabels   = 8 * tool.KiB // address, name and media type of one part
	maxMetadata = 64 * tool.KiB
	maxEffects  = 1000
)

// fitStructured makes a structured result above the budget an error, since half
// of it is none. What stands beside it stays.
func fitStructured(result tool.Result, budget tool.ByteSize) tool.Result {
	if size := len(result.Structured); size > int(budget) {
		result.Structured = nil
		result.Error = tool.Errorf(tool.ResourceExhausted,
			"the tool's structured result has %s bytes, more than its budget of %s", thousands(size), budget).
			WithHint("ask for less in one call")
	}
	return result
}

// fitContent cuts the text parts to budget bytes together, and leaves out
// binary parts beyond [maxBinary] and any beyond [maxParts]. Notes say what is
// missing.
func fitContent(content []tool.Content, budget int) []tool.Content {
	text, binary := 0, 0
	for _, part := range content {
		if part.IsText() {
			text += len(part.Data)
		} else {
			binary += len(part.Data)
		}
	}
	if text <= budget && binary <= int(maxBinary) && len(content) <= maxParts && !slices.ContainsFunc(content, unfit) {
		return content
	}

	kept := content[:min(len(content), maxParts)]
	fitted := make([]tool.Content, 0, len(kept)+2)
	binary = 0
	left, cut := budget, false
	for _, part := range kept {
		switch {
		case unshowable(part):
			part = tool.Text("[a part of the output left out: it is of no kind that can be shown]")
		case !part.IsText() && binary+len(part.Data) > int(maxBinary):
			part = tool.Text(fmt.Sprintf("[%s of %s bytes left out: too large]", part.MediaType, thousands(len(part.Data))))
		case !part.IsText():
			binary += len(part.Data)
		case cut:
			continue // nothing follows the place of the cut
		default:
			part.Data, cut = cutText(part.Data, left)
			left -= len(part.Data)
		}
		fitted = append(fitted, part)
	}
	if cut {
		fitted = appendNote(fitted, truncationNote(text))
	}
	if more := len(content) - len(kept); more > 0 {
		fitted = append(fitted, tool.Text(fmt.Sprintf("[%s parts of the output left out: too many]", thousands(more))))
	}
	return fitted
}

// truncationNote is what callers recognise cut output by.
func truncationNote(size int) string {
	return fmt.Sprintf("[output truncated — original size: %s bytes]", thousands(size))
}

// appendNote puts a note on a line of its own at the end of the last text.
func appendNote(content []tool.Content, note string) []tool.Content {
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

// cutText returns at most most bytes of text, whole characters only, with
// U+FFFD for what is not UTF-8, and whether anything was cut off.
func cutText(text []byte, most int) (fitting []byte, cut bool) {
	// No more than this is looked at, however long the text is.
	text, cut = text[:min(len(text), most+utf8.UTFMax)], len(text) > most
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	if len(text) <= most {
		return text, cut
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most], true
}

// unfit reports whether a part cannot be given to the caller as it is.
func unfit(part tool.Content) bool {
	return unshowable(part) || part.IsText() && !utf8.Valid(part.Data)
}

// unshowable reports whether a part is of no known kind, or labelled with what
// cannot be a label.
func unshowable(part tool.Content) bool {
	labels := len(part.URI) + len(part.Name) + len(part.MediaType)
	return part.Kind < tool.KindText || part.Kind > tool.KindResource || labels > int(maxLabels) ||
		!utf8.ValidString(part.URI) || !utf8.ValidString(part.Name) || !utf8.ValidString(part.MediaType)
}

// checkFacts checks what stands beside the content. The error has code
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

// thousands writes a number as in 142,857.
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
