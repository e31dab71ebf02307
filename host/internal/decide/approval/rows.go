package approval

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// row is a record as the database keeps it.
type row struct {
	id, user, binding string
	created, expires  int64
	// question is the record without content and answer, as JSON.
	question, questionSum []byte
	// content is the part that only approvers need; lists do not read it.
	content, contentSum []byte

	assents                          string // JSON of the approvals so far; "" for none
	state                            State
	decidedBy, via, message, spentBy string
	decided                          int64
}

// content is the part of a record that can be large.
type content struct {
	Arguments json.RawMessage `json:"arguments"`
	Preview   *tool.Preview   `json:"preview,omitempty"`
	Runs      []string        `json:"runs,omitempty"`
	Sensitive []string        `json:"sensitive,omitempty"`
	Subject   Subject         `json:"subject,omitzero"`
	Given     catalog.Basis   `json:"given,omitzero"`
}

// encode returns the row of a new record.
func encode(r Record, binding string) (row, error) {
	whole := content{Arguments: r.Arguments, Preview: r.Preview, Runs: r.Runs, Sensitive: r.Sensitive, Subject: r.Subject, Given: r.Given}
	r.withoutContent()
	question, err := json.Marshal(r)
	if err != nil {
		return row{}, fmt.Errorf("approval %s: %w", r.ID, err)
	}
	text, err := plainJSON(whole)
	if err != nil {
		return row{}, fmt.Errorf("approval %s: %w", r.ID, err)
	}
	questionSum, contentSum := sha256.Sum256(question), sha256.Sum256(text)
	return row{
		id: r.ID, user: r.User, binding: binding, created: r.Created.UnixMilli(), expires: r.Expires.UnixMilli(),
		question: question, questionSum: questionSum[:], content: text, contentSum: contentSum[:], state: r.State,
	}, nil
}

// withoutContent drops the part of the record that lists do not read.
func (r *Record) withoutContent() {
	r.Arguments, r.Preview, r.Runs, r.Sensitive, r.Subject, r.Given = nil, nil, nil, nil, Subject{}, catalog.Basis{}
}

// plainJSON is [json.Marshal] without escapes for HTML, so that reading returns the
// arguments byte for byte.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func (w *row) insert(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO approvals
		(id, user, binding, created, expires, question, question_sum, content, content_sum, state)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		w.id, w.user, w.binding, w.created, w.expires, string(w.question), w.questionSum, string(w.content), w.contentSum, w.state)
	return err
}

// errDamaged reports that a row has changed since it was written.
var errDamaged = errors.New("the record is damaged")

// record returns the record of a row, with its arguments and preview if the row has
// them. It refuses a row that was changed by anything but an answer.
func (w *row) record() (Record, error) {
	var r Record
	sum := sha256.Sum256(w.question)
	if !bytes.Equal(sum[:], w.questionSum) {
		return Record{}, errDamaged
	}
	if err := json.Unmarshal(w.question, &r); err != nil {
		return Record{}, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if r.ID != w.id || r.User != w.user || r.binding() != w.binding || r.Created.UnixMilli() != w.created || r.Expires.UnixMilli() != w.expires {
		return Record{}, errDamaged
	}
	r.State, r.DecidedBy, r.Via, r.Message = w.state, w.decidedBy, w.via, w.message
	r.Decided, r.SpentBy = timeOf(w.decided), w.spentBy
	if w.assents != "" {
		if err := json.Unmarshal([]byte(w.assents), &r.Assents); err != nil {
			return Record{}, fmt.Errorf("%w: %w", errDamaged, err)
		}
	}
	if w.content == nil {
		return r, nil
	}
	var whole content
	sum = sha256.Sum256(w.content)
	if !bytes.Equal(sum[:], w.contentSum) {
		return Record{}, errDamaged
	}
	err := json.Unmarshal(w.content, &whole)
	if err != nil || previewDigest(whole.Preview) != r.PreviewDigest || sensitiveDigest(whole.Sensitive) != r.SensitiveDigest {
		return Record{}, errors.Join(errDamaged, err)
	}
	r.Arguments, r.Preview, r.Runs, r.Sensitive = whole.Arguments, whole.Preview, whole.Runs, whole.Sensitive
	r.Subject, r.Given = whole.Subject, whole.Given
	return r, nil
}

const columns = "id, user, binding, created, expires, question, question_sum, state, decided_by, via, message, decided, spent_by, assents"

func (w *row) targets() []any {
	return []any{
		&w.id, &w.user, &w.binding, &w.created, &w.expires, &w.question, &w.questionSum,
		&w.state, &w.decidedBy, &w.via, &w.message, &w.decided, &w.spentBy, &w.assents,
	}
}

// read returns a record, with its arguments and preview if whole is true.
func (s *Service) read(ctx context.Context, id string, whole bool) (Record, error) {
	var w row
	query, targets := "SELECT "+columns+" FROM approvals WHERE id = ?", w.targets()
	if whole {
		query, targets = "SELECT "+columns+", content, content_sum FROM approvals WHERE id = ?", append(targets, &w.content, &w.contentSum)
	}
	err := s.store.Read().QueryRowContext(ctx, query, id).Scan(targets...)
	if errors.Is(err, sql.ErrNoRows) {
		return Record{}, unknown(id)
	}
	if err != nil {
		return Record{}, fmt.Errorf("read approval %s: %w", id, err)
	}
	r, err := w.record()
	if err != nil {
		return Record{}, fmt.Errorf("read approval %s: %w", id, err)
	}
	return r, nil
}

// readAll returns the records that match a condition, without their arguments and
// previews. It leaves out and logs damaged records.
func (s *Service) readAll(ctx context.Context, where string, args []any) ([]Record, error) {
	rows, err := s.store.Read().QueryContext(ctx, "SELECT "+columns+" FROM approvals "+where, args...)
	if err != nil {
		return nil, fmt.Errorf("list approvals: %w", err)
	}
	defer rows.Close()
	var records []Record
	for rows.Next() {
		var w row
		if err := rows.Scan(w.targets()...); err != nil {
			return nil, fmt.Errorf("list approvals: %w", err)
		}
		r, err := w.record()
		if err != nil {
			s.logger.Error("an approval is left out", "approval", w.id, "error", err)
			continue
		}
		records = append(records, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list approvals: %w", err)
	}
	return records, nil
}

// execOne runs a statement and reports whether it changed a row.
func execOne(ctx context.Context, tx *sql.Tx, query string, args ...any) (bool, error) {
	result, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// queryStrings returns the first column of all rows of a query.
func queryStrings(ctx context.Context, tx *sql.Tx, query string, args ...any) ([]string, error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		found = append(found, text)
	}
	return found, rows.Err()
}

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// Filter selects the records that [Service.List] returns.
type Filter struct {
	// By is the caller. An approver sees the records that it may decide, an admin sees
	// all, and the zero Caller sees none.
	By auth.Caller
	// States and Users select records; empty means all.
	States []State
	Users  []string
	// Limit bounds the records; 0 means 100, the maximum is 1,000.
	Limit int
}

// List returns records without their arguments and previews, the newest first.
// A record that cannot be read is left out and logged.
func (s *Service) List(ctx context.Context, f Filter) ([]Record, error) {
	where, args, any := f.where()
	if !any {
		return nil, nil
	}
	return s.readAll(ctx, where, args)
}

// where returns the SQL condition and its arguments, and false if no record can match.
func (f Filter) where() (string, []any, bool) {
	var conditions []string
	var args []any
	in := func(column string, values []string) {
		conditions = append(conditions, column+" IN (?"+strings.Repeat(", ?", len(values)-1)+")")
		for _, v := range values {
			args = append(args, v)
		}
	}
	switch {
	case f.By.Roles.Has(auth.Admin) && !f.By.Roles.Has(auth.Agent):
	case f.By.Issuer != "" && !f.By.Roles.Has(auth.Agent): // see [auth.Caller.MayApprove]
		suffix := "@" + f.By.Issuer
		conditions = append(conditions, "substr(user, -length(?)) = ? AND user <> ?")
		args = append(args, suffix, suffix, f.By.User)
	default:
		seen := slices.DeleteFunc(append([]string{f.By.User}, f.By.Approves...), func(user string) bool { return !sees(f.By, user) })
		if len(seen) == 0 {
			return "", nil, false
		}
		in("user", seen)
	}
	if len(f.Users) > 0 {
		in("user", f.Users)
	}
	if len(f.States) > 0 {
		names := make([]string, len(f.States))
		for i, s := range f.States {
			names[i] = string(s)
		}
		in("state", names)
	}
	where := ""
	if len(conditions) > 0 {
		where = "WHERE " + strings.Join(conditions, " AND ")
	}
	limit := f.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	return where + " ORDER BY id DESC LIMIT ?", append(args, min(limit, maxLimit)), true
}
