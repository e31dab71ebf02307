package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Kind is the kind of a row.
type Kind string

// The kinds of rows.
const (
	// Start: a call is about to run. Only calls that are not read_only have one.
	Start Kind = "start"
	// End: a call has ended.
	End Kind = "end"
	// Change: a plugin has changed, or a person has changed something of the host, such as a token.
	// It belongs to no call.
	Change Kind = "change"
	// Connection: a process of a plugin had a connection to another machine, or was refused one. Its
	// call is known in most cases.
	Connection Kind = "connection"
	// Notice: a message about the journal itself.
	Notice Kind = "notice"
)

const (
	// MaxArguments is the largest size of recorded arguments. Of larger ones only the hash and the
	// size are recorded.
	MaxArguments = 64 * tool.KiB
	// maxText limits each other text of a row, in bytes; longer texts are cut.
	maxText = 8 << 10
	// cutMark ends a cut text.
	cutMark = "… (cut)"
)

// Record is one row. Which fields are set depends on the kind and on how far the call came. The
// zero value of a field means that it is unknown or does not apply; it is omitted from JSON. The
// journal sets Seq, Kind, Time, ClockBack, ArgumentsSize, Notice, Prev and Hash, and ignores values
// from the caller.
type Record struct {
	// Seq numbers the rows from 1 without gaps. It alone is their order.
	Seq  int64 `json:"seq,omitempty"`
	Kind Kind  `json:"kind"`
	// Time is when the row was submitted, by the wall clock, in UTC to the millisecond.
	Time time.Time `json:"time"`
	// ClockBack reports that Time is before that of the previous row: the clock was set back.
	ClockBack bool `json:"clock_back,omitempty"`

	// Call is the call's id; calls must have one.
	Call string `json:"call,omitempty"`
	// Tool and Plugin are names; Digest is that of the plugin's program.
	Tool   string `json:"tool,omitempty"`
	Plugin string `json:"plugin,omitempty"`
	Digest string `json:"digest,omitempty"`
	// Definition is the digest of the tool's accepted definition; "" if the plugin is not locked.
	Definition string    `json:"definition,omitempty"`
	Tier       tool.Tier `json:"tier,omitempty"`

	User    string `json:"user,omitempty"`
	Client  string `json:"client,omitempty"`
	Session string `json:"session,omitempty"`

	// Arguments are the arguments of the call without secrets. If they are larger than
	// [MaxArguments] they are omitted, and ArgumentsSize is their size in bytes.
	Arguments     json.RawMessage `json:"arguments,omitempty"`
	ArgumentsHash string          `json:"arguments_hash,omitempty"`
	ArgumentsSize int64           `json:"arguments_size,omitempty"`

	// About is what the call was about, shortened: a command, an address or a file of its arguments,
	// by their roles. It has no secrets. Of a connection, it is the host and the port.
	About string `json:"about,omitempty"`
	// Context is what the agent said about the call. Nobody has checked it.
	Context string `json:"context,omitempty"`

	// Verdict is the policy's decision, by Rule, which is configured at Where.
	Verdict string `json:"verdict,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Where   string `json:"where,omitempty"`
	// ApprovedBy is auto, grant, user or config; Approval is the id of the approval or the grant.
	ApprovedBy string `json:"approved_by,omitempty"`
	Approval   string `json:"approval,omitempty"`
	// Approver is the person who decided about the call. Via is the channel of the answer, such as
	// cli, rest or elicitation; it is timeout or caller if no person decided. For a change, it is the
	// channel of the request, such as cli, rest or signal.
	Approver string `json:"approver,omitempty"`
	Via      string `json:"via,omitempty"`

	// Status is success, error or rejected; Code and Error say more.
	Status string `json:"status,omitempty"`
	Code   string `json:"code,omitempty"`
	Error  string `json:"error,omitempty"`
	// ResultDigest is the digest of the whole result, and Bytes its size.
	ResultDigest string `json:"result_digest,omitempty"`
	Bytes        int64  `json:"bytes,omitempty"`
	// BrokenClaim is the sign that the tool tried to change something in a process that can change
	// nothing, although it claims to be read_only.
	BrokenClaim string `json:"broken_claim,omitempty"`
	// Attempts counts how often the call was sent to the plugin, Repairs the repaired arguments.
	Attempts int `json:"attempts,omitempty"`
	Repairs  int `json:"repairs,omitempty"`
	// Duration is "duration_ms" in JSON: milliseconds, to the microsecond.
	Duration time.Duration `json:"-"`

	// Address is the IP address of a connection, Sent and Received are its bytes, as the plugin sees
	// them.
	Address  string `json:"address,omitempty"`
	Sent     int64  `json:"sent,omitempty"`
	Received int64  `json:"received,omitempty"`

	// Notice is a message about the journal, or a description of a change.
	Notice string `json:"notice,omitempty"`

	// Hash is the row's hash over everything that is stored of it and over Prev, the hash of the
	// previous row.
	Prev string `json:"prev,omitempty"`
	Hash string `json:"hash,omitempty"`
}

// plain is a Record without methods; withDuration adds the duration in JSON form.
type (
	plain        Record
	withDuration struct {
		*plain
		Duration float64 `json:"duration_ms,omitempty"`
	}
)

// JSONType returns the type with the fields of a [Record] in JSON.
func JSONType() reflect.Type { return reflect.TypeFor[withDuration]() }

// MarshalJSON implements [json.Marshaler].
func (r Record) MarshalJSON() ([]byte, error) {
	return json.Marshal(withDuration{plain: (*plain)(&r), Duration: r.milliseconds()})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *Record) UnmarshalJSON(data []byte) error {
	read := withDuration{plain: (*plain)(r)}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	if ms := read.Duration; ms > 0 && ms < math.MaxInt64/float64(time.Millisecond) {
		r.Duration = time.Duration(math.Round(ms*1000)) * time.Microsecond
	}
	return nil
}

// The body of a row is JSON that begins with the time in a form of fixed length, so
// that the time can be set when the row's place is known.
const (
	timeForm   = "2006-01-02T15:04:05.000Z"
	zeroTime   = "0000-00-00T00:00:00.000Z"
	bodyPrefix = `{"time":"`
	timeEnd    = len(bodyPrefix) + len(timeForm)
)

// storable returns t in a form that a row can hold: the year has four digits.
func storable(t time.Time) time.Time {
	t = t.UTC().Truncate(time.Millisecond)
	if year := t.Year(); year < 1 || year > 9999 {
		return time.Time{}
	}
	return t
}

// setTime puts the time into a body.
func setTime(body []byte, t time.Time) {
	var text [64]byte // AppendFormat writes more than it returns
	copy(body[len(bodyPrefix):timeEnd], t.UTC().AppendFormat(text[:0], timeForm))
}

// bodyTime returns the time in a body.
func bodyTime(body string) (time.Time, error) {
	return time.Parse(timeForm, body[min(len(body), len(bodyPrefix)):min(len(body), timeEnd)])
}

// bodyKind returns the kind of a body.
func bodyKind(body string) Kind {
	_, rest, _ := strings.Cut(body, `"kind":"`)
	kind, _, _ := strings.Cut(rest, `"`)
	return Kind(kind)
}

// stored returns the stored form of r: everything but seq, call and the hashes, with zeros for
// the time. Nothing is escaped for HTML, so that arguments are unchanged.
func (r *Record) stored() []byte {
	stored := plain(*r)
	stored.Seq, stored.Call, stored.Prev, stored.Hash, stored.ClockBack = 0, "", "", "", false
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(struct {
		Time string `json:"time"`
		withDuration
	}{zeroTime, withDuration{plain: &stored, Duration: r.milliseconds()}})
	if err != nil {
		panic(err) // texts, numbers and valid JSON can always be encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func (r *Record) milliseconds() float64 { return max(0, float64(r.Duration.Microseconds())) / 1000 }

// cut shortens a text that is longer than maxText, between two characters.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return excerpt.Head(text, maxText-len(cutMark)) + cutMark
}

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

// prepare drops fields that the journal sets itself, invalid tiers, and arguments that are too
// large.
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

// texts returns the texts of r that are stored.
func (r *Record) texts() []*string {
	return []*string{
		&r.Tool, &r.Plugin, &r.Digest, &r.Definition, &r.User, &r.Client, &r.Session, &r.ArgumentsHash, &r.About, &r.Context, &r.Verdict, &r.Rule, &r.Where,
		&r.ApprovedBy, &r.Approval, &r.Approver, &r.Via, &r.Status, &r.Code, &r.Error, &r.ResultDigest, &r.BrokenClaim, &r.Address, &r.Notice,
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

// redactJSON returns valid JSON with redact applied to each string and number. A number that
// changes becomes a string.
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

// appendRedacted appends raw, whose value is text, or the redacted text. Short secrets are
// recognized by the quotes around them.
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
