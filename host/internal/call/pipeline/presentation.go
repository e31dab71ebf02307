package pipeline

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Presentation is the form in which a caller receives a result. The zero value means all parts
// of the result, within the tool's bounds.
type Presentation struct {
	// MaxOutput bounds the text of a result, including its error and the host's own lines. 0
	// means the tool's bound.
	MaxOutput tool.ByteSize
	// MaxLines bounds the lines of the text. 0 means no bound.
	MaxLines int
	// TextOnly means that the caller does not show structured results. The JSON of a result
	// without text becomes its text.
	TextOnly bool
}

const (
	// noteRoom is the part of [Presentation.MaxOutput] that is reserved for the host's own
	// lines.
	noteRoom = tool.KiB
	// minText is the least text that remains beside a long error.
	minText = tool.KiB
)

// budget returns the maximum size of the text for this caller, which the plugin also receives.
// The host's own tools have no bound of their own.
func (c *call) budget() tool.ByteSize {
	own, most := c.entry.MaxOutput, c.Presentation.MaxOutput
	if c.entry.OfHost() {
		own = math.MaxInt32
	}
	if most == 0 {
		return own
	}
	return min(own, max(most-noteRoom, minText))
}

// room returns the budget that remains beside the error of a result.
func (c *call) room(result tool.Result) int {
	if result.Error == nil || c.Presentation.MaxOutput == 0 {
		return int(c.budget())
	}
	failure := tool.ByteSize(len(result.Error.ModelText()))
	return int(min(c.budget(), max(c.Presentation.MaxOutput-noteRoom-failure, minText)))
}

// asText turns the JSON of a structured result without text into text, for a caller that shows
// only text. If the JSON exceeds the tool's budget, only that text remains.
func (c *call) asText(result tool.Result) tool.Result {
	if !c.Presentation.TextOnly || result.Structured == nil || !json.Valid(result.Structured) {
		return result
	}
	if len(texts(result.Content)) == 0 {
		var compact bytes.Buffer
		_ = json.Compact(&compact, result.Structured) // the JSON is valid
		result.Content = append(slices.Clip(result.Content), tool.Content{Kind: tool.KindText, Data: compact.Bytes()})
	}
	if len(result.Structured) > int(c.entry.MaxOutput) {
		result.Structured = nil
	}
	return result
}
