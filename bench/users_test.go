package bench

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// manyUsers is the number of users of BenchmarkUsers, each with a process.
	manyUsers = 200
	// rate is how many calls all users make in a second together.
	rate = 20
	// paced is the number of calls of one round.
	paced = 200
)

// BenchmarkUsers compares calls of 200 users, each with a process of their own that runs already, with
// calls of one user, at the same rate. It also measures the memory of a process.
func BenchmarkUsers(b *testing.B) {
	secret := func(user int) string { return fmt.Sprintf("secret-of-the-user-%04d", user) }
	var tokens strings.Builder
	for user := range manyUsers {
		fmt.Fprintf(&tokens, "  token \"t%d\" {\n    sha256 = \"%x\"\n    user   = \"user%d\"\n    roles  = [\"agent\"]\n  }\n", user, sha256.Sum256([]byte(secret(user))), user)
	}
	config := writeConfig(b, pluginBlock("hello", fmt.Sprintf("  isolation_scope = \"user\"\n  max_instances = %d", manyUsers)), "auth {\n"+tokens.String()+"}\n")
	cmd := toolhost(config, "serve", "--json")
	said, stop := serve(b, cmd)
	defer stop()
	hello := func(user int) time.Duration {
		request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, said.URL+"/v1/calls", strings.NewReader(`{"tool":"hello","arguments":{"name":"Ada","greeting":"Hello"}}`))
		if err != nil {
			b.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+secret(user))
		request.Header.Set("Content-Type", "application/json")
		began := time.Now()
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			b.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		took := time.Since(began)
		if err != nil || !strings.Contains(string(text), "Hello, Ada") {
			b.Fatalf("%s, %v", text, err)
		}
		return took
	}
	for user := range manyUsers {
		hello(user)
	}
	var processes []float64
	for _, pid := range descendants(b, cmd.Process.Pid) {
		if !isGuard(b, pid) {
			processes = append(processes, pss(b, pid))
		}
	}
	if len(processes) < manyUsers {
		b.Fatalf("%d processes run, want %d", len(processes), manyUsers)
	}
	var many, one []time.Duration
	for b.Loop() {
		many = append(many, pace(func(n int) time.Duration { return hello(n % manyUsers) })...)
		one = append(one, pace(func(int) time.Duration { return hello(0) })...)
	}
	b.ReportMetric(float64(percentile(many, 99).Microseconds()), "p99-µs/call-200-users")
	b.ReportMetric(float64(percentile(one, 99).Microseconds()), "p99-µs/call-one-user")
	b.ReportMetric(float64(percentile(many, 99))/float64(percentile(one, 99)), "p99-ratio")
	b.ReportMetric(middle(processes), "process-MiB")
	b.ReportMetric(pss(b, cmd.Process.Pid), "host-MiB")
}

// pace makes calls at the rate, whatever time each takes, and returns their times.
func pace(call func(n int) time.Duration) []time.Duration {
	took := make([]time.Duration, paced)
	tick := time.Tick(time.Second / rate)
	var calls sync.WaitGroup
	for n := range paced {
		<-tick
		calls.Go(func() { took[n] = call(n) }) // ends with its call; Wait waits for it
	}
	calls.Wait()
	return took
}

func percentile(all []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}
