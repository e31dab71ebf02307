package pipeline

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Presentation is the form in which a caller gets a result. The zero value is a result
// with all its parts, within the bounds of the tool.
type Presentation struct {
	// MaxOutput bounds the text that the caller gets, with the error and the host's own
	// lines. 0 leaves the bound of the tool.
	MaxOutput tool.ByteSize
	// MaxLines bounds the lines of the text. 0 means no bound.
	MaxLines int
	// TextOnly means that the caller shows no structured results: a result without a
	// text gets its JSON as one.
	TextOnly bool
}

const (
	// noteRoom is the part of [Presentation.MaxOutput] that is left for the host's own
	// lines.
	noteRoom = tool.KiB
	// minText is what a long error leaves of the text.
	minText = tool.KiB
)

// budget returns how many bytes of text a caller can get. The plugin shapes its result
// to it. The tools of the host have no bound of their own.
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

// room returns the budget that is left beside the error of a result.
func (c *call) room(result tool.Result) int {
	if result.Error == nil || c.Presentation.MaxOutput == 0 {
		return int(c.budget())
	}
	failure := tool.ByteSize(len(result.Error.ModelText()))
	return int(min(c.budget(), max(c.Presentation.MaxOutput-noteRoom-failure, minText)))
}

// asText gives a structured result without a text its JSON as text, for a caller that
// shows only texts. It drops JSON above the tool's budget, which is in the text then.
func (c *call) asText(result tool.Result) tool.Result {
	if !c.Presentation.TextOnly || result.Structured == nil || !json.Valid(result.Structured) {
		return result
	}
	if len(texts(result.Content)) == 0 {
		var compact bytes.Buffer
		_ = json.Compact(&compact, result.Structured) // it is valid
		result.Content = append(slices.Clip(result.Content), tool.Content{Kind: tool.KindText, Data: compact.Bytes()})
	}
	if len(result.Structured) > int(c.entry.MaxOutput) {
		result.Structured = nil
	}
	return result
}
