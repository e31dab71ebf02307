package supervisor

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestRestartsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r restarts
		for n, want := range []time.Duration{
			250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second,
			8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second, 30 * time.Second,
		} {
			r.crashed(time.Now(), 0)
			if got := r.ceiling(); got != want {
				t.Errorf("after %d crashes in a row the longest wait is %v, want %v", n+1, got, want)
			}
			wait := r.wait(time.Now())
			if wait <= 0 || wait > want {
				t.Errorf("after %d crashes in a row wait() = %v, want more than 0 and at most %v", n+1, wait, want)
			}
			<-time.After(wait)
			if got := r.wait(time.Now()); got != 0 {
				t.Errorf("wait() = %v once the time is over, want 0", got)
			}
		}
	})
}

func TestFirstCrashCostsNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r restarts
		r.crashed(time.Now(), time.Second)
		if got := r.wait(time.Now()); got != 0 {
			t.Errorf("after the first crash of a plugin that has worked wait() = %v, want 0", got)
		}
		r.crashed(time.Now(), time.Second)
		if got := r.wait(time.Now()); got <= 0 {
			t.Errorf("after the second crash in a row wait() = %v, want more than 0", got)
		}
	})
}

func TestRestartsResetAfterReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r restarts
		for range 4 {
			r.crashed(time.Now(), 0)
			<-time.After(breakerWindow)
		}
		r.crashed(time.Now(), backoffReset-1)
		if got, want := r.ceiling(), 4*time.Second; got != want {
			t.Errorf("ready for just less than a minute: longest wait %v, want %v", got, want)
		}
		r.crashed(time.Now(), backoffReset)
		if got, want := r.ceiling(), backoffBase; got != want {
			t.Errorf("ready for a minute: longest wait %v, want %v", got, want)
		}
	})
}

func TestRestartsBreak(t *testing.T) {
	for _, tt := range []struct {
		name  string
		every time.Duration
		want  bool
	}{
		{"5 crashes in 2 minutes", breakerWindow/4 - 1, true},
		{"5 crashes in a little longer", breakerWindow / 4, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r restarts
				for range breakerCrashes - 1 {
					r.crashed(time.Now(), 0)
					if r.broken {
						t.Fatalf("broken after %d crashes", len(r.recent))
					}
					<-time.After(tt.every)
				}
				r.crashed(time.Now(), 0)
				if r.broken != tt.want {
					t.Errorf("broken = %v, want %v", r.broken, tt.want)
				}
			})
		})
	}
}
