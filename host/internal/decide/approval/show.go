package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/internal/digest"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxShown bounds the bytes of a call that are shown.
	maxShown = 256 << 10
	// lineCost is added to the bytes of each line.
	lineCost = 8
	// maxSummary bounds the characters of a summary.
	maxSummary = 160
)

// LineKind is the kind of a line of a [View].
type LineKind string

// The kinds of lines. Facts, headings, warnings and omissions are the host's words; the
// others come from the agent and the plugin.
const (
	Fact     LineKind = "fact"
	Heading  LineKind = "heading"
	Warning  LineKind = "warning"
	Omission LineKind = "omission"
	Said     LineKind = "said" // by the agent
	Argument LineKind = "argument"
	Shown    LineKind = "preview"
	Added    LineKind = "added" // by a diff in the preview
	Removed  LineKind = "removed"
)

// Line is a line of a [View].
type Line struct {
	Kind LineKind `json:"kind"`
	// Label names a fact.
	Label string `json:"label,omitempty"`
	// Text has no line breaks, and no invisible characters except tabs.
	Text string `json:"text"`
}

// View is the text that an approver reads before deciding. Every character is visible:
// characters that would be invisible, or control the screen, are shown as escapes. The
// words of agents and plugins cannot be mistaken for the host's, which have kinds of
// their own.
type View struct {
	Lines []Line `json:"lines"`
	// Complete reports that the whole call is shown. If it is false, a line says how much is
	// missing.
	Complete bool `json:"complete"`
}

// Show returns the view of a record from [Service.Get].
func Show(r Record) View {
	p := painter{left: maxShown}
	p.fact("Approval", r.ID)
	p.fact("State", stateText(r))
	p.fact("Tool", r.Tool)
	p.fact("Plugin", r.Plugin)
	p.fact("Tier", r.Tier.String())
	p.fact("User", r.User)
	p.fact("Client", r.Client)
	p.fact("Session", r.Session)
	p.fact("Rule", reason(r))
	p.fact("Approved", r.Progress())
	if r.State != Open {
		p.fact("Decision", r.ended())
		p.fact("Message", r.Message)
	}
	return p.call(r)
}

// Card is like [Show] for an open record, with the facts about the call in three lines. It shows as
// much of the call itself.
func Card(r Record) View {
	p := painter{left: maxShown}
	p.fact("Tool", fmt.Sprintf("%s of plugin %s, %s", r.Tool, r.Plugin, r.Tier))
	caller := r.User
	if r.Client != "" {
		caller += ", by " + r.Client
	}
	p.fact("For", caller)
	p.fact("Rule", reason(r))
	p.fact("Approved", r.Progress())
	return p.call(r)
}

// ShowDiff returns the view of a unified diff.
func ShowDiff(diff string) View {
	p := painter{left: maxShown}
	p.text(Shown, "the diff", diff, true)
	return View{Lines: p.lines, Complete: !p.omitted}
}

// call adds what the call does and returns the view.
func (p *painter) call(r Record) View {
	if r.Verdict == policy.Confirm && !r.Standing {
		p.fact("Note", "the policy requires a person to look at each such call")
	}
	p.warn(suspicions(r))
	p.warn(r.pauses())
	if r.Description != "" {
		p.add(Heading, "The plugin says of the tool:")
		p.text(Shown, "the tool's description", seenLine(r.Description), false)
	}
	if r.Context != "" {
		p.add(Heading, "The agent says (the host has not checked this):")
		p.text(Said, "what the agent says", r.Context, false)
	}
	if len(r.Sensitive) > 0 {
		p.add(Heading, "It may use these sensitive files:")
		for _, file := range r.Sensitive {
			p.text(Argument, "the name of a sensitive file", seenLine(file), false)
		}
	}
	p.add(Heading, "Arguments:")
	if r.Arguments == nil {
		p.omitted = true
		p.add(Omission, "the arguments and the preview are not available")
	}
	p.arguments(r.Arguments)
	if len(r.Runs) > 0 {
		p.add(Heading, "That would run:")
		for _, command := range r.Runs {
			p.text(Argument, "a command", seenLine(command), false)
		}
	}
	if r.NoPreview != "" {
		p.add(Heading, "No preview: "+seenLine(r.NoPreview))
	}
	if r.Preview != nil {
		p.add(Heading, whoSays(r))
		p.preview(r.Preview)
	}
	return View{Lines: p.lines, Complete: !p.omitted}
}

// stateText describes the state of a record, and until when it can change.
func stateText(r Record) string {
	if r.State.Closed() {
		return string(r.State)
	}
	return fmt.Sprintf("%s, until %s", r.State, r.Expires.Format(time.RFC3339))
}

// reason names the rule that requires a person's approval.
func reason(r Record) string {
	text := r.Verdict.String() + ", by " + r.Rule
	if r.Where != "" {
		text += " at " + r.Where
	}
	return text
}

// painter collects lines.
type painter struct {
	lines   []Line
	left    int // how many more bytes of agents and plugins may be shown
	omitted bool
}

func (p *painter) add(kind LineKind, text string) {
	p.lines = append(p.lines, Line{Kind: kind, Text: text})
}

// fact adds a fact of the host. The text may come from outside.
func (p *painter) fact(label, text string) {
	if text != "" {
		p.lines = append(p.lines, Line{Kind: Fact, Label: label, Text: seenLine(text)})
	}
}

func (p *painter) warn(texts []string) {
	for _, text := range texts {
		p.add(Warning, text)
	}
}

// omit adds that n bytes of a text are not shown.
func (p *painter) omit(what string, n int, whole []byte) {
	p.omitted = true
	p.add(Omission, fmt.Sprintf("%d bytes of %s are not shown; all %d have %s", n, what, len(whole), digest.Of(whole)))
}

// text adds a text line by line.
func (p *painter) text(kind LineKind, what, text string, diff bool) {
	rest := text
	for rest != "" {
		line, next, _ := strings.Cut(rest, "\n")
		shown, n := p.line(line)
		if n < len(line) || p.left < 0 {
			if n > 0 {
				p.add(lineKind(kind, shown, diff), shown)
			}
			p.omit(what, len(rest)-n, []byte(text))
			return
		}
		p.add(lineKind(kind, shown, diff), shown)
		rest = next // a final line break does not start another line
	}
}

// line returns the start of a line that may be shown, and its size in the original
// line.
func (p *painter) line(text string) (string, int) {
	var b strings.Builder
	var pen pen
	p.left -= lineCost
	for i := 0; i < len(text); {
		if n := plain(text[i:], p.left, 0, 0); n > 0 {
			b.WriteString(text[i : i+n])
			pen.skip(text[i+n-1])
			i, p.left = i+n, p.left-n
			continue
		}
		char, size := utf8.DecodeRuneInString(text[i:])
		before := b.Len()
		pen.write(&b, char, text[i:i+size])
		if p.left -= b.Len() - before; p.left < 0 {
			return b.String()[:before], i
		}
		i += size
	}
	return b.String(), len(text)
}

// lineKind returns the kind of a line, which in a diff may be Added or Removed.
func lineKind(kind LineKind, text string, diff bool) LineKind {
	switch {
	case diff && strings.HasPrefix(text, "+"):
		return Added
	case diff && strings.HasPrefix(text, "-"):
		return Removed
	}
	return kind
}

// preview adds the plugin's preview.
func (p *painter) preview(preview *tool.Preview) {
	if preview.Summary != "" {
		p.text(Shown, "the summary", preview.Summary, false)
	}
	for i, c := range preview.Content {
		what := fmt.Sprintf("part %d of the preview", i+1)
		if about := strings.TrimSpace(c.Name + " " + c.URI); about != "" {
			p.text(Shown, "the name of "+what, about, false)
		}
		switch {
		case c.IsText():
			p.text(Shown, what, string(c.Data), isDiff(c))
		case len(c.Data) > 0:
			p.omit(what+", "+seenLine(excerpt.Of(c.Kind.String()+" "+c.MediaType, maxSummary))+",", len(c.Data), c.Data)
		}
	}
}

// isDiff reports whether a part is a unified diff.
func isDiff(c tool.Content) bool {
	text := append([]byte("\n"), c.Data[:min(len(c.Data), 4<<10)]...)
	return c.MediaType == "text/x-diff" || bytes.Contains(text, []byte("\n--- ")) && bytes.Contains(text, []byte("\n+++ "))
}

// summary returns a line for lists: the preview's summary, or the arguments if there is
// none.
func summary(r Record) string {
	text := r.Tool + " " + string(r.Arguments)
	if r.Preview != nil && r.Preview.Summary != "" {
		text = r.Preview.Summary
	}
	return bounded(seenLine(excerpt.Of(text, 8*maxSummary)), maxSummary)
}

// whoSays returns the heading of a preview, which for a connection is the host's.
func whoSays(r Record) string {
	if r.Subject.Host != "" {
		return "What would happen:"
	}
	return "The plugin says what would happen:"
}

// decoded returns a JSON value, or nil if the text is not JSON.
func decoded(text json.RawMessage) any {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil
	}
	return value
}

const indent = "  "

// arguments adds JSON, indented. A string continues on a new line after each line
// break, which is shown as \n, too.
func (p *painter) arguments(text json.RawMessage) {
	w := argumentWriter{painter: p, text: text}
	if !w.write() {
		p.omit("the arguments", len(text)-w.pos, text)
	}
}

// argumentWriter splits JSON into lines.
type argumentWriter struct {
	*painter
	text  []byte
	pos   int // how many bytes were shown
	depth int
	line  strings.Builder
	pen   pen
}

// write adds the text and reports whether all of it could be shown.
func (w *argumentWriter) write() bool {
	for w.pos < len(w.text) {
		ok := true
		switch c := w.text[w.pos]; c {
		case ' ', '\t', '\r', '\n':
			w.pos++
		case '{', '[':
			ok = w.open(c)
		case '}', ']':
			w.depth--
			ok = w.breakLine(0) && w.put(1)
		case ',':
			ok = w.put(1) && w.breakLine(0)
		case ':':
			ok = w.put(1)
			w.line.WriteByte(' ')
		case '"':
			ok = w.str()
		default:
			ok = w.put(1)
		}
		if !ok {
			w.end()
			return false
		}
	}
	w.end()
	return true
}

// end adds the last line.
func (w *argumentWriter) end() {
	if strings.TrimSpace(w.line.String()) != "" {
		w.flush()
	}
}

// open starts an object or a list; an empty one stays on one line.
func (w *argumentWriter) open(c byte) bool {
	if next := w.pos + 1; next < len(w.text) && w.text[next] == c+2 { // in ASCII, '}' is '{' plus 2, and ']' is '[' plus 2
		return w.put(2)
	}
	w.depth++
	return w.put(1) && w.breakLine(0)
}

// str adds a string as it is written.
func (w *argumentWriter) str() bool {
	if !w.put(1) {
		return false
	}
	for w.pos < len(w.text) {
		switch w.text[w.pos] {
		case '"':
			return w.put(1)
		case '\\':
			feed := w.pos+1 < len(w.text) && w.text[w.pos+1] == 'n'
			if !w.put(min(2, len(w.text)-w.pos)) {
				return false
			}
			if feed && w.pos < len(w.text) && w.text[w.pos] != '"' && !w.breakLine(2) {
				return false
			}
		default:
			if w.run() {
				continue
			}
			_, size := utf8.DecodeRune(w.text[w.pos:])
			if !w.put(size) {
				return false
			}
		}
	}
	return true
}

// run adds the characters up to the next one that needs care, and reports whether there
// were any.
func (w *argumentWriter) run() bool {
	n := plain(w.text[w.pos:], w.left, '"', '\\')
	if n == 0 {
		return false
	}
	w.line.Write(w.text[w.pos : w.pos+n])
	w.pen.skip(w.text[w.pos+n-1])
	w.pos, w.left = w.pos+n, w.left-n
	return true
}

// put adds the next size bytes: one character, or several of ASCII.
func (w *argumentWriter) put(size int) bool {
	text := string(w.text[w.pos : w.pos+size])
	char, _ := utf8.DecodeRuneInString(text)
	var b strings.Builder
	w.pen.write(&b, char, text)
	if w.left -= b.Len(); w.left < 0 {
		return false
	}
	w.line.WriteString(b.String())
	w.pos += size
	return true
}

// breakLine ends the line and indents the next one by the depth and more steps.
func (w *argumentWriter) breakLine(more int) bool {
	if !w.flush() {
		return false
	}
	spaces := strings.Repeat(indent, max(0, w.depth)+more)
	w.left -= len(spaces)
	w.line.WriteString(spaces)
	return w.left >= 0
}

func (w *argumentWriter) flush() bool {
	w.add(Argument, w.line.String())
	w.line.Reset()
	w.left -= lineCost
	return w.left >= 0
}
