package supervisor

import (
	"testing"
	"testing/synctest"
	"time"
)

func defaultRestart() Restart { return Restart{}.withDefaults() }

func TestRestartsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r restarts
		for n, want := range []time.Duration{
			250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second,
			8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second, 30 * time.Second,
		} {
			r.crashed(time.Now(), 0, Restart{MaxCrashes: 100}.withDefaults())
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
		r.crashed(time.Now(), time.Second, defaultRestart())
		if got := r.wait(time.Now()); got != 0 {
			t.Errorf("after the first crash of a plugin that has worked wait() = %v, want 0", got)
		}
		r.crashed(time.Now(), time.Second, defaultRestart())
		if got := r.wait(time.Now()); got <= 0 {
			t.Errorf("after the second crash in a row wait() = %v, want more than 0", got)
		}
	})
}

func TestRestartsResetAfterReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r restarts
		for range 4 {
			r.crashed(time.Now(), 0, defaultRestart())
			<-time.After(defaultRestart().Within)
		}
		r.crashed(time.Now(), backoffReset-1, defaultRestart())
		if got, want := r.ceiling(), 4*time.Second; got != want {
			t.Errorf("ready for just less than a minute: longest wait %v, want %v", got, want)
		}
		r.crashed(time.Now(), backoffReset, defaultRestart())
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
		{"5 crashes in 2 minutes", defaultRestart().Within/4 - 1, true},
		{"5 crashes in a little longer", defaultRestart().Within / 4, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r restarts
				for range defaultRestart().MaxCrashes - 1 {
					r.crashed(time.Now(), 0, defaultRestart())
					if r.broken {
						t.Fatalf("broken after %d crashes", len(r.recent))
					}
					<-time.After(tt.every)
				}
				r.crashed(time.Now(), 0, defaultRestart())
				if r.broken != tt.want {
					t.Errorf("broken = %v, want %v", r.broken, tt.want)
				}
			})
		})
	}
}

// TestBreakerPauses: if a plugin crashes again after a pause, the next pause is longer. A plugin
// that ran for a minute starts from the beginning.
func TestBreakerPauses(t *testing.T) {
	t.Parallel()
	limits := Restart{MaxCrashes: 2, Within: time.Minute, Pause: 10 * time.Second, MaxPause: 35 * time.Second}
	now := time.Unix(0, 0)
	var r restarts
	r.crashed(now, time.Second, limits)
	if r.open(now) {
		t.Fatal("the breaker opened at the first crash")
	}
	for n, want := range []time.Duration{10 * time.Second, 20 * time.Second, 35 * time.Second, 35 * time.Second} {
		r.crashed(now, time.Second, limits)
		if got := r.wait(now); got != want || !r.open(now) {
			t.Errorf("crash %d keeps the plugin off for %v, want %v", n+2, got, want)
		}
		now = now.Add(want)
		if r.open(now) {
			t.Error("the plugin stays off when the pause is over")
		}
	}
	now = now.Add(2 * time.Minute)
	r.crashed(now, 2*time.Minute, limits)
	if got := r.wait(now); got != 0 {
		t.Errorf("one crash after two minutes costs %v, want nothing", got)
	}
	r.crashed(now, time.Second, limits)
	if got := r.wait(now); got != 10*time.Second {
		t.Errorf("the breaker opens anew for %v, want the first pause", got)
	}
}

// TestHostFailuresOpenNoBreaker: they are tried again, with growing pauses.
func TestHostFailuresOpenNoBreaker(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	var r restarts
	for n := range 100 {
		r.failed(now)
		if wait := r.wait(now); r.broken || wait <= 0 || wait > backoffCap {
			t.Fatalf("failure %d: broken = %v, the wait is %v", n+1, r.broken, wait)
		}
	}
}
