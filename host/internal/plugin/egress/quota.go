package egress

import (
	"math"
	"sync"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// quotaPeriod is the time after its first byte in which a user may transfer the quota.
const quotaPeriod = 24 * time.Hour

// maxQuotas is the number of users from which those are forgotten whose period is over.
const maxQuotas = 10_000

// Quotas count the bytes of each user over all proxies, while the host runs. nil counts nothing.
type Quotas struct {
	mu    sync.Mutex // guards users
	users map[string]*quota
}

type quota struct {
	most  tool.ByteSize // 0 means no bound
	bytes int64
	until time.Time // when the period ends; zero before the first byte
}

// NewQuotas returns quotas of users who have transferred nothing.
func NewQuotas() *Quotas { return &Quotas{users: make(map[string]*quota)} }

// set sets the quota of a user, which a call of theirs has brought.
func (q *Quotas) set(user string, most tool.ByteSize) {
	if q == nil || user == "" {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.of(user).most = most
}

// use counts bytes of a user. The error says that the user has transferred more than the quota. With
// no bytes, it says whether nothing is left.
func (q *Quotas) use(user string, bytes int64) *tool.Error {
	if q == nil || user == "" { // whose it is, is not known
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	of, now := q.of(user), time.Now()
	if !now.Before(of.until) {
		of.bytes, of.until = 0, time.Time{}
	}
	if of.bytes += bytes; of.until.IsZero() && bytes > 0 {
		of.until = now.Add(quotaPeriod)
	}
	if of.most <= 0 || of.bytes < int64(of.most) || of.bytes == int64(of.most) && bytes > 0 {
		return nil
	}
	wait := of.until.Sub(now).Round(time.Second)
	return tool.Errorf(tool.RateLimited, "the user has transferred %v in a day, which is the quota; there is more in %v", of.most, wait).WithRetry(wait)
}

// left returns how many bytes a user may transfer before the quota is used up. Connections of the user
// that carry bytes at the same time may each have as many.
func (q *Quotas) left(user string) int64 {
	if q == nil || user == "" {
		return math.MaxInt64 - 1
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	of := q.of(user)
	switch {
	case of.most <= 0:
		return math.MaxInt64 - 1
	case !time.Now().Before(of.until):
		return int64(of.most)
	}
	return int64(of.most) - of.bytes
}

func (q *Quotas) of(user string) *quota {
	if of := q.users[user]; of != nil {
		return of
	}
	if len(q.users) >= maxQuotas {
		now := time.Now()
		for name, of := range q.users {
			if !now.Before(of.until) {
				delete(q.users, name)
			}
		}
	}
	of := new(quota)
	q.users[user] = of
	return of
}
