package approval

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/digest"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxContext bounds the characters of the agent's words about its call.
	maxContext = 500
	// maxDescription bounds the characters of the first sentence of a tool's description.
	maxDescription = 300
	// maxName bounds the bytes of each name in a question.
	maxName = 1024
	// maxContent bounds the bytes of arguments and preview.
	maxContent = 8 << 20
	// maxParts bounds the parts of a preview.
	maxParts = 256
	// maxCandidates bounds the earlier records of one call that Ask tries to reuse.
	maxCandidates = 64
	// hintIDs is the number of open approvals that an error names.
	hintIDs = 5
)

// Question describes a call to the person who decides about it.
type Question struct {
	// Call is the id of the call.
	Call string
	// User, Client and Session are the caller's.
	User, Client, Session string
	// Plugin and Tool name the tool; Digest identifies the plugin's program.
	Plugin, Tool, Digest string
	// Definition is the digest of the tool's accepted definition; "" if the plugin is not locked.
	Definition string
	// Description is the plugin's description of the tool. The record keeps its first sentence.
	Description string
	Tier        tool.Tier
	// Verdict is why a person is asked. Rule decided it, and is configured at Where.
	Verdict     policy.Verdict
	Rule, Where string
	// Approvers is how many different people must approve the call; 0 means one.
	Approvers int
	// Standing reports that the policy lets a grant answer calls like this one.
	Standing bool
	// NoGrant is the reason why it does not.
	NoGrant string
	// PolicyRevision identifies the policy.
	PolicyRevision string
	// Arguments are the canonical bytes that will be sent. The record keeps only
	// their hash.
	Arguments json.RawMessage
	// Shown are the arguments as people may see them, with secrets hidden; nil
	// means Arguments.
	Shown json.RawMessage
	// Preview is the plugin's description of the effects of the call; nil if it has
	// none. The service keeps it: it must not be changed.
	Preview *tool.Preview
	// NoPreview is why a tool with previews returned none for this call.
	NoPreview string
	// Runs are the programs that shell commands in the arguments would run, as the host
	// reads them, one line each.
	Runs []string
	// Sensitive are the sensitive files that the call may use once it is allowed, as
	// absolute paths without symbolic links.
	Sensitive []string
	// Context is the agent's words about the call. They are cut to 500 characters,
	// with a mark.
	Context string
	// Subject is the part of the call that a grant can be about.
	Subject Subject
	// Given is the program and the tools that a grant would be given for.
	Given catalog.Basis
	// Paused are grants that would cover the call if they were not paused.
	Paused []PausedGrant
}

// Binding returns the digest that identifies the call: its user, client, plugin, tool,
// arguments, program, preview, sensitive files, and how many people must approve it. [Service.Spend] compares it with
// that of the call that is about to run.
func (q *Question) Binding() string {
	return bindingOf(q.User, q.Client, q.Plugin, q.Tool, digest.Of(q.Arguments), q.Digest, previewDigest(q.Preview), sensitiveDigest(q.Sensitive), q.Approvers)
}

// Ask creates a durable record of a question and returns it. If there is an open or
// approved record of the same call, and no operation of this process waits for that
// one, Ask returns it instead. In both cases the record is claimed for the caller
// until [Service.Release], [Service.Cancel] or its end. A record of the same call that
// was rejected while no operation waited for it is returned once, until it would have
// expired.
//
// If the user has too many open records, the error is [tool.RateLimited]. If the
// record cannot be written, it is [tool.Unavailable], and the call must not run.
func (s *Service) Ask(ctx context.Context, q Question) (Record, error) {
	r, err := s.draft(q)
	if err != nil {
		return Record{}, err
	}
	row, err := encode(r, q.Binding())
	if err != nil {
		return Record{}, err
	}
	fresh := &live{
		id: r.ID, user: r.User, bytes: len(row.content), expires: r.Expires, deadline: s.elapsed() + s.timeout,
		answered: make(chan struct{}), claimed: true,
	}
	fresh.mu.Lock() // no change before it is published
	defer fresh.mu.Unlock()
	s.add(fresh)

	var redeemed *live
	var rejected, open []string
	err = s.store.Do(ctx, func(tx *sql.Tx) error {
		s.unclaim(redeemed)
		redeemed, open = nil, nil
		candidates, err := queryStrings(ctx, tx,
			`SELECT id FROM approvals WHERE binding = ? AND state IN ('open', 'approved')
			ORDER BY state = 'open', id LIMIT ?`, row.binding, maxCandidates)
		if err != nil {
			return err
		}
		if redeemed = s.claim(candidates); redeemed != nil {
			return nil
		}
		if rejected, err = s.unheard(ctx, tx, row.binding); err != nil || len(rejected) > 0 {
			return err
		}
		open, err = queryStrings(ctx, tx, `SELECT id FROM approvals WHERE state = 'open' AND user = ?`, r.User)
		if err != nil || len(open) >= s.maxOpen {
			return err
		}
		return row.insert(ctx, tx)
	})
	if err == nil && redeemed == nil && len(rejected) == 0 && len(open) < s.maxOpen {
		s.publish(fresh, r)
		return r, nil
	}
	s.drop(fresh)
	switch {
	case len(rejected) > 0 && err == nil:
		return s.Get(ctx, rejected[0])
	case err != nil:
		s.unclaim(redeemed)
		return Record{}, unwritten(ctx, err, "The approval could not be recorded, so the call does not run")
	case redeemed != nil:
		return s.redeem(ctx, redeemed)
	}
	return Record{}, tooMany(open)
}

// unheard returns the id of a rejected record of which no call has been told, and notes that one
// is told now; none if there is no such record.
func (s *Service) unheard(ctx context.Context, tx *sql.Tx, binding string) ([]string, error) {
	return queryStrings(ctx, tx, `UPDATE approvals SET unheard = 0 WHERE id =
		(SELECT id FROM approvals WHERE binding = ? AND state = 'rejected' AND unheard = 1 AND expires > ? LIMIT 1) RETURNING id`,
		binding, s.now().UnixMilli())
}

// add adds a record before it is on disk, since it can be decided as soon as it can
// be read there.
func (s *Service) add(l *live) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[l.id] = l
	if len(s.live) == 1 { // if not, tend wakes up for an earlier record, which ends first
		s.hurry()
	}
}

// drop removes a record that did not reach the disk.
func (s *Service) drop(l *live) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.wake()
	delete(s.live, l.id)
}

// redeem returns a claimed record.
func (s *Service) redeem(ctx context.Context, l *live) (Record, error) {
	r, err := s.Get(ctx, l.id)
	if err != nil {
		s.unclaim(l)
	}
	return r, err
}

// claim claims the first of the records that is not claimed and has not expired. It
// returns nil if there is none.
func (s *Service) claim(ids []string) *live {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if l := s.live[id]; l != nil && !l.claimed && l.failure == nil && !s.expired(l) {
			l.claimed = true
			return l
		}
	}
	return nil
}

// claimed reports whether an operation waits for a record.
func (s *Service) claimed(l *live) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.claimed
}

func (s *Service) unclaim(l *live) {
	if l == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.claimed = false
}

// Release ends the claim of the operation that asked: the next identical call gets
// the record. It does nothing if the record is closed.
func (s *Service) Release(id string) { s.unclaim(s.find(id)) }

// Cancel closes a record because its caller gave up, also if it is approved and not
// spent. It does nothing if the record is closed.
func (s *Service) Cancel(ctx context.Context, id string) error {
	l := s.find(id)
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// The claim lasts until the record is closed: the same call made now would get a record that is
	// about to close.
	if err := s.end(ctx, Canceled, "caller", l); err != nil {
		s.unclaim(l)
		return unwritten(ctx, err, "The approval could not be canceled")
	}
	return nil
}

// Abandon is [Service.Cancel] for a record that its caller has released before. It does nothing while
// another operation waits for the record.
func (s *Service) Abandon(ctx context.Context, id string) error {
	if s.claim([]string{id}) == nil {
		return nil
	}
	return s.Cancel(ctx, id)
}

// draft checks a question and returns an open record of it.
func (s *Service) draft(q Question) (Record, error) {
	if q.Shown == nil {
		q.Shown = q.Arguments
	}
	if err := q.check(); err != nil {
		return Record{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Record{}, fmt.Errorf("make the id of an approval: %w", err)
	}
	created := timeOf(s.now().UnixMilli())
	r := Record{
		ID: "ap_" + id.String(), Call: q.Call, User: q.User, Client: q.Client, Session: q.Session,
		Plugin: q.Plugin, Tool: q.Tool, Digest: q.Digest, Definition: q.Definition, Tier: q.Tier,
		Verdict: q.Verdict, Rule: q.Rule, Where: q.Where, Approvers: q.Approvers, PolicyRevision: q.PolicyRevision,
		Arguments: q.Shown, ArgumentsHash: digest.Of(q.Arguments), Preview: q.Preview, PreviewDigest: previewDigest(q.Preview), NoPreview: q.NoPreview, Runs: q.Runs,
		Sensitive: q.Sensitive, SensitiveDigest: sensitiveDigest(q.Sensitive),
		Description: bounded(excerpt.Sentence(strings.ToValidUTF8(q.Description, "\uFFFD")), maxDescription),
		Context:     ShortContext(q.Context),
		Created:     created, Expires: created.Add(s.timeout.Truncate(time.Millisecond)), State: Open, Subject: q.Subject,
	}
	r.Summary = summary(r)
	r.Standing, r.NoGrant, r.Paused = q.Standing, q.NoGrant, q.Paused
	if r.Approvers > 1 {
		r.Standing, r.NoGrant = false, "several people approve each such call"
	}
	if r.Standing && !Show(r).Complete {
		r.Standing, r.NoGrant = false, "not all of the call could be shown"
	}
	if r.Standing {
		r.Given = q.Given
	}
	return r, nil
}

// check refuses questions that cannot be shown or stored unchanged.
func (q *Question) check() error {
	size := len(q.Shown)
	texts := []string{q.Call, q.User, q.Client, q.Session, q.Plugin, q.Tool, q.Digest, q.Definition, q.Rule, q.Where, q.PolicyRevision, q.NoPreview}
	for _, text := range texts {
		if len(text) > maxName || !utf8.ValidString(text) {
			return tool.Errorf(tool.InvalidArgument, "A name of the call cannot be shown to a person: it is not UTF-8, or longer than %d bytes", maxName)
		}
	}
	if q.User == "" || q.Plugin == "" || q.Tool == "" || q.Call == "" {
		return fmt.Errorf("ask about call %q of tool %q: user, plugin, tool and call are required", q.Call, q.Tool)
	}
	if q.Approvers < 0 || q.Approvers > policy.MaxApprovers {
		return fmt.Errorf("ask about call %q: %d approvers", q.Call, q.Approvers)
	}
	if q.Verdict != policy.Ask && q.Verdict != policy.Confirm {
		return fmt.Errorf("ask about call %q: the verdict is %v", q.Call, q.Verdict)
	}
	for _, text := range []json.RawMessage{q.Arguments, q.Shown} {
		if !json.Valid(text) || !utf8.Valid(text) {
			return fmt.Errorf("ask about call %q: the arguments are not JSON", q.Call)
		}
	}
	for _, file := range q.Sensitive {
		if !utf8.ValidString(file) {
			return fmt.Errorf("ask about call %q: the name of a sensitive file is not UTF-8", q.Call)
		}
		size += len(file)
	}
	if q.Preview != nil {
		n, ok := previewSize(q.Preview)
		if !ok {
			return tool.Errorf(tool.OutputInvalid, "The plugin's preview of the call cannot be shown: it is not UTF-8, or has more than %d parts", maxParts).
				WithHint("the plugin has a mistake: tell its author")
		}
		size += n
	}
	if size > maxContent {
		return tool.Errorf(tool.ResourceExhausted, "The call is too large to be shown to a person: %d bytes of arguments and preview, at most %d", size, maxContent).
			WithHint("do it in smaller calls")
	}
	return nil
}

// previewSize returns the bytes of a preview, and whether it can be shown: whether
// its texts are UTF-8 and it does not have too many parts.
func previewSize(p *tool.Preview) (size int, valid bool) {
	valid = utf8.ValidString(p.Summary) && len(p.Content) <= maxParts
	size = len(p.Summary) + len(p.Digest)
	for _, c := range p.Content {
		for _, text := range []string{c.MediaType, c.URI, c.Name} {
			valid = valid && utf8.ValidString(text)
			size += len(text)
		}
		valid = valid && (!c.IsText() || utf8.Valid(c.Data)) && c.Kind >= tool.KindText && c.Kind <= tool.KindResource
		size += len(c.Data)
	}
	return size, valid
}

// tooMany returns the error for a user with too many open records.
func tooMany(open []string) error {
	more := ""
	if n := len(open) - hintIDs; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
		open = open[:hintIDs]
	}
	return tool.Errorf(tool.RateLimited, "Too many calls wait for a person's approval").WithRetry(0).
		WithHint("wait until some are decided: %s%s", strings.Join(open, ", "), more)
}

// ShortContext returns what is kept of an agent's words about its call: at most 500 characters.
func ShortContext(text string) string {
	return bounded(strings.ToValidUTF8(text, "\uFFFD"), maxContext)
}

// bounded returns at most limit characters of text, the mark of a cut included.
func bounded(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	const mark = "… [cut]"
	return excerpt.Characters(text, limit-utf8.RuneCountInString(mark)) + mark
}

// bindingOf returns the digest of the fields that identify a call: an approval is valid
// only for calls with the same binding. Without sensitive files and for one approver it equals the
// binding of earlier versions.
func bindingOf(user, client, plugin, name, arguments, program, preview, sensitive string, approvers int) string {
	parts := []string{"toolhost approval 1", user, client, plugin, name, arguments, program, preview}
	switch {
	case approvers > 1:
		parts = append(parts, sensitive, strconv.Itoa(approvers))
	case sensitive != "":
		parts = append(parts, sensitive)
	}
	return digestOfAll(parts...)
}

// binding returns the digest that identifies the record's call.
func (r Record) binding() string {
	return bindingOf(r.User, r.Client, r.Plugin, r.Tool, r.ArgumentsHash, r.Digest, r.PreviewDigest, r.SensitiveDigest, r.Approvers)
}

// digestOfAll returns the digest of a list of texts. Each is preceded by its length,
// so that different lists have different digests.
func digestOfAll[T string | []byte](parts ...T) string {
	h := sha256.New()
	var length [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return digest.Format(h.Sum(nil))
}

// sensitiveDigest returns the digest of the sensitive files that a call may use; "" if
// there are none.
func sensitiveDigest(files []string) string {
	if len(files) == 0 {
		return ""
	}
	return digestOfAll(files...)
}

// previewDigest returns the digest of everything that a preview shows, and of the state
// from which it was computed; "" if there is no preview.
func previewDigest(p *tool.Preview) string {
	if p == nil {
		return ""
	}
	parts := [][]byte{[]byte(p.Summary), p.Digest}
	for _, c := range p.Content {
		parts = append(parts, []byte(c.Kind.String()), []byte(c.MediaType), []byte(c.URI), []byte(c.Name), c.Data)
	}
	return digestOfAll(parts...)
}
