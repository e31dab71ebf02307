package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// maxUsage bounds the rows of [Journal.Usage]; further users and tools share the last one.
const maxUsage = 10_000

// UsageQuery selects the calls that [Journal.Usage] counts: those of a user ("" is all) that
// ended at Since or later and before Until, which may be zero.
type UsageQuery struct {
	User         string
	Since, Until time.Time
}

// Usage sums up the calls of one user and one tool that have ended and that the journal still has.
type Usage struct {
	User   string `json:"user"`
	Plugin string `json:"plugin,omitempty"`
	Tool   string `json:"tool"`
	// Calls counts all, Errors those that failed and Rejected those that a person rejected.
	Calls    int64 `json:"calls"`
	Errors   int64 `json:"errors"`
	Rejected int64 `json:"rejected"`
	// Milliseconds is how long they took together, with waiting for a person, and Bytes the size of
	// their results.
	Milliseconds float64 `json:"duration_ms"`
	Bytes        int64   `json:"bytes"`
}

// Usage returns the use of each tool by each user, sorted by user and by calls, most first. It reads
// the whole journal.
func (j *Journal) Usage(ctx context.Context, q UsageQuery) ([]Usage, error) {
	all, err := j.usage(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("sum up the journal: %w", err)
	}
	return all, nil
}

func (j *Journal) usage(ctx context.Context, q UsageQuery) ([]Usage, error) {
	rows, err := j.opts.Store.Read().QueryContext(ctx, "SELECT body FROM journal ORDER BY seq")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	type key struct{ user, plugin, tool string }
	sums := make(map[key]*Usage)
	for rows.Next() {
		var body []byte
		var r struct {
			Kind                       Kind
			Time                       time.Time
			User, Plugin, Tool, Status string
			Bytes                      int64
			Milliseconds               float64 `json:"duration_ms"`
		}
		if err := rows.Scan(&body); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(body, &r); err != nil {
			return nil, err
		}
		if r.Kind != End || q.User != "" && r.User != q.User || r.Time.Before(q.Since) || !q.Until.IsZero() && !r.Time.Before(q.Until) {
			continue
		}
		of := key{r.User, r.Plugin, r.Tool}
		sum := sums[of]
		if sum == nil && len(sums) >= maxUsage-1 {
			of = key{}
			sum = sums[of]
		}
		if sum == nil {
			sum = &Usage{User: of.user, Plugin: of.plugin, Tool: of.tool}
			sums[of] = sum
		}
		sum.Calls++
		switch r.Status {
		case "error":
			sum.Errors++
		case "rejected":
			sum.Rejected++
		}
		sum.Milliseconds += r.Milliseconds
		sum.Bytes += r.Bytes
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	all := make([]Usage, 0, len(sums))
	for _, sum := range sums {
		all = append(all, *sum)
	}
	slices.SortFunc(all, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Tool, b.Tool))
	})
	return all, nil
}
