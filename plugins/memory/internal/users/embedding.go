package users

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/embed"
	"github.com/toolhost/toolhost/plugins/memory/internal/store"
	"github.com/toolhost/toolhost/plugins/memory/internal/terms"
)

// maxQueries bounds the cache of queries' vectors.
const maxQueries = 256

// queries asks the embedder on behalf of calls. After a failure it pauses for
// restAfter.
type queries struct {
	embedder embed.Embedder
	wait     time.Duration
	local    bool

	mu     sync.Mutex // guards all below
	known  map[string][]float32
	order  []string // of known, the oldest first
	until  time.Time
	failed error
}

// restAfter is how long calls do not ask the embedder after it has failed.
const restAfter = 30 * time.Second

func newQueries(opts Options) *queries {
	_, local := opts.Embedder.(embed.Local)
	return &queries{embedder: opts.Embedder, wait: opts.Wait, local: local, known: map[string][]float32{}}
}

// Failed returns the error of the embedder's last use, or nil.
func (q *queries) Failed() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failed
}

// note records the result of the embedder's last use.
func (q *queries) note(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failed, q.until = err, time.Time{}
	if err != nil && !errors.Is(err, embed.ErrNoKey) {
		q.until = time.Now().Add(restAfter)
	}
}

// resting returns the reason for which the embedder is not asked at present, or
// nil.
func (q *queries) resting() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if time.Now().Before(q.until) {
		return q.failed
	}
	return nil
}

// embed returns the vectors of texts within the time that a call waits.
func (q *queries) embed(ctx context.Context, texts []string) ([][]float32, error) {
	if q.local {
		return q.embedder.Embed(ctx, texts)
	}
	if err := q.resting(); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, q.wait)
	defer cancel()
	vectors, err := q.embedder.Embed(waiting, texts)
	switch {
	case errors.Is(err, embed.ErrRefused): // other texts may be accepted
	case err == nil || ctx.Err() == nil: // a canceled call does not mean that the embedder failed
		q.note(err)
	}
	return vectors, err
}

// query returns the vector of a query from a server, or from the cache.
func (q *queries) query(ctx context.Context, text string) ([]float32, error) {
	q.mu.Lock()
	known := q.known[text]
	q.mu.Unlock()
	if known != nil {
		return known, nil
	}
	vectors, err := q.embed(ctx, []string{text})
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.known[text] == nil {
		q.known[text] = vectors[0]
		q.order = append(q.order, text)
		if len(q.order) > maxQueries {
			delete(q.known, q.order[0])
			q.order = q.order[1:]
		}
	}
	return vectors[0], nil
}

// Prepare splits content into passages with terms and vectors. Passages have no
// vector if the embedder does not respond in time; call [Set.Embed] after saving
// them.
func (u *User) Prepare(ctx context.Context, content string) ([]store.Passage, error) {
	return u.prepare(ctx, content, embed.Batch)
}

// PrepareLater is Prepare for one of many contents: it does not ask a server.
func (u *User) PrepareLater(ctx context.Context, content string) ([]store.Passage, error) {
	return u.prepare(ctx, content, 0)
}

// prepare asks the embedder for at most so many texts now and leaves the rest to
// the background.
func (u *User) prepare(ctx context.Context, content string, most int) ([]store.Passage, error) {
	var passages []store.Passage
	q := u.set.queries
	var missing []int
	var texts []string
	for _, part := range terms.Passages(content) {
		p := store.Passage{Start: part.Start, Stop: part.Stop}
		text := content[p.Start:p.Stop]
		words := terms.Words(text)
		p.Terms = store.Count(words)
		if q.local {
			p.Vector = embed.Hash(words, nil)
		} else {
			known, err := u.store.Known(ctx, text)
			if err != nil {
				return nil, err
			}
			if p.Vector = known; known == nil {
				missing, texts = append(missing, len(passages)), append(texts, text)
			}
		}
		passages = append(passages, p)
	}
	if len(missing) == 0 || len(missing) > most {
		return passages, nil
	}
	vectors, err := q.embed(ctx, texts)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for i, v := range vectors { // none if the embedder failed
		passages[missing[i]].Vector = v
	}
	return passages, nil
}

// Embed starts embedding passages without a vector in the background.
func (s *Set) Embed() {
	select {
	case s.kick <- struct{}{}:
	default: // a start is already pending
	}
}

// Embedder returns the name of the embedder to show.
func (s *Set) Embedder() string { return s.opts.Embedder.Label() }

// Trouble returns a message about the user's search if it is limited, or "".
func (u *User) Trouble() string {
	if u.needs.Load() > 0 {
		return "the index of the notes does not fit into memory: only words are searched, exactly as spelled"
	}
	if err := u.set.queries.Failed(); err != nil {
		return "the embedder failed: " + err.Error()
	}
	return ""
}

// errNoEmbedder means that the embedder did not respond.
var errNoEmbedder = errors.New("the embedder does not respond")
