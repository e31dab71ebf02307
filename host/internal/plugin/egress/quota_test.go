package egress

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestQuotas: each user has the quota for a day from the first byte on, and all of it.
func TestQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQuotas()
		q.set("ada", 100)
		q.set("bob", 0)
		for i, step := range []struct {
			user  string
			bytes int64
			after time.Duration
			want  string
		}{
			{"ada", 0, 0, ""},
			{"ada", 60, time.Hour, ""},
			{"ada", 40, time.Hour, ""}, // all of it
			{"ada", 0, time.Hour, "the user has transferred 100B in a day, which is the quota; there is more in 22h0m0s"},
			{"ada", 1, 0, "in 22h0m0s"},
			{"bob", 1 << 40, 0, ""},
			{"", 1 << 40, 0, ""},
			{"eve", 1 << 40, 0, ""}, // no call of hers has brought a quota
			{"ada", 0, 22*time.Hour - time.Second, "in 1s"},
			{"ada", 0, time.Second, ""},
			{"ada", 100, time.Hour, ""},
			{"ada", 1, time.Hour, "in 23h0m0s"},
		} {
			<-time.After(step.after)
			err := q.use(step.user, step.bytes)
			if got := fmt.Sprint(err); (err != nil) != (step.want != "") || err != nil && !strings.Contains(got, step.want) {
				t.Errorf("step %d: use(%q, %d) = %s, want %q", i, step.user, step.bytes, got, step.want)
			}
		}
		q.set("ada", 1000)
		if err := q.use("ada", 1); err != nil {
			t.Errorf("with a larger quota: %v", err)
		}
		for i := range 3 * maxQuotas {
			q.set(fmt.Sprint(i), 1)
		}
		if len(q.users) > maxQuotas {
			t.Errorf("%d users are kept, most of whom transferred nothing", len(q.users))
		}
		if q.use("ada", 1000) == nil {
			t.Error("a user whose period runs was forgotten")
		}
		var none *Quotas
		none.set("ada", 1)
		if err := none.use("ada", 2); err != nil {
			t.Errorf("without quotas: %v", err)
		}
	})
}
