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

// maxQueries bounds the queries whose vectors are remembered.
const maxQueries = 256

// queries asks the embedder on behalf of calls, and leaves it alone for a while
// after it has failed.
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

// restAfter is how long the embedder is left alone by calls after it has failed.
const restAfter = 30 * time.Second

func newQueries(opts Options) *queries {
	_, local := opts.Embedder.(embed.Local)
	return &queries{embedder: opts.Embedder, wait: opts.Wait, local: local, known: map[string][]float32{}}
}

// Failed returns why the embedder did not work the last time, or nil.
func (q *queries) Failed() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failed
}

// note remembers how the embedder did.
func (q *queries) note(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failed, q.until = err, time.Time{}
	if err != nil && !errors.Is(err, embed.ErrNoKey) {
		q.until = time.Now().Add(restAfter)
	}
}

// resting returns why the embedder is left alone at present, or nil.
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
	case errors.Is(err, embed.ErrRefused): // it says nothing of other texts
	case err == nil || ctx.Err() == nil: // a call that was given up says nothing of the embedder
		q.note(err)
	}
	return vectors, err
}

// query returns the vector of a query, of a model.
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

// Prepare makes the passages that a content is found by. If the embedder does not
// answer in time they have no vectors yet: see [Set.Embed], once they are saved.
func (u *User) Prepare(ctx context.Context, content string) ([]store.Passage, error) {
	return u.prepare(ctx, content, embed.Batch)
}

// PrepareLater does what Prepare does for one of many contents: it does not ask
// a model.
func (u *User) PrepareLater(ctx context.Context, content string) ([]store.Passage, error) {
	return u.prepare(ctx, content, 0)
}

// prepare asks the embedder for most texts now, and leaves more to the background.
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

// Embed has embedded in the background what has no vector.
func (s *Set) Embed() {
	select {
	case s.kick <- struct{}{}:
	default: // it was said already
	}
}

// Embedder returns how the embedder is shown.
func (s *Set) Embedder() string { return s.opts.Embedder.Label() }

// Trouble returns what does not work for the user as it should, or "".
func (u *User) Trouble() string {
	if u.needs.Load() > 0 {
		return "the notes take more memory than the plugin has: only their words are searched, as they are written"
	}
	if err := u.set.queries.Failed(); err != nil {
		return "the embedder does not work: " + err.Error()
	}
	return ""
}

// errNoEmbedder says that a search by meaning cannot be made now.
var errNoEmbedder = errors.New("the embedder does not answer")
