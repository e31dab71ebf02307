package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// benchWords makes notes of a vocabulary in which some words are frequent.
type benchWords struct{ *rand.Rand }

func (r benchWords) word() string {
	return fmt.Sprintf("%s%d", []string{"garden", "meeting", "report", "river", "music"}[r.IntN(5)], int(r.ExpFloat64()*3000))
}

func (r benchWords) text(words int) string {
	all := make([]string, words)
	for i := range all {
		all[i] = r.word()
	}
	return strings.Join(all, " ")
}

// BenchmarkMemory measures the plugin at several numbers of notes, over gRPC
// without the host.
func BenchmarkMemory(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	for _, notes := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(notes), func(b *testing.B) { benchNotes(b, notes) })
	}
}

func benchNotes(b *testing.B, notes int) {
	b.Helper()
	r := benchWords{rand.New(rand.NewPCG(1, 2))}
	dir := b.TempDir()
	options := sdktest.Options{Settings: map[string]any{"memory_budget": "2GiB"}, Context: tool.Context{User: "ada", UserDir: dir}}
	p := sdktest.Start(b, newPlugin(), options)
	began, used := time.Now(), cpu(b)
	for done := 0; done < notes; {
		var lines strings.Builder
		for range min(10_000, notes-done) {
			fmt.Fprintf(&lines, "{\"content\":%q}\n", r.text(15))
			done++
		}
		if got := p.Call(b.Context(), "memory_import", args{"data": lines.String()}); got.Error != nil {
			b.Fatal(got.Error, got.Error.Unwrap())
		}
	}
	imported, importing := float64(notes)/time.Since(began).Seconds(), (cpu(b)-used)/time.Duration(notes)
	p.Close()

	var before, after runtime.MemStats
	p = sdktest.Start(b, newPlugin(), options)
	// The connection and the data of a first call exist already: from another user.
	other := tool.Call{Tool: "memory_search", Arguments: json.RawMessage(`{"query":"x"}`), Context: tool.Context{User: "other"}}
	if got := p.Run(b.Context(), other, tool.Sink{}); got.Error != nil {
		b.Fatal(got.Error)
	}
	runtime.GC()
	runtime.ReadMemStats(&before)
	began, used = time.Now(), cpu(b)
	find(b, p, r.text(1))
	loaded, loading := time.Since(began), cpu(b)-used
	runtime.GC()
	runtime.ReadMemStats(&after)

	var searches, saves []time.Duration
	var searching, saving time.Duration // of the processors
	for b.Loop() {
		used := cpu(b)
		for range 10 {
			began := time.Now()
			find(b, p, r.text(5))
			searches = append(searches, time.Since(began))
		}
		searching += cpu(b) - used
		began, used := time.Now(), cpu(b)
		if got := p.Call(b.Context(), "memory_save", args{"content": r.text(15)}); got.Error != nil {
			b.Fatal(got.Error)
		}
		saves, saving = append(saves, time.Since(began)), saving+cpu(b)-used
	}
	p.Close()
	inside(b, dir, r)
	b.ReportMetric(milliseconds(searches, .5), "search-p50-ms")
	b.ReportMetric(milliseconds(searches, .99), "search-p99-ms")
	b.ReportMetric(milliseconds(saves, .5), "save-p50-ms")
	b.ReportMetric(imported, "imported/s")
	b.ReportMetric(loaded.Seconds()*1e3, "load-ms")
	b.ReportMetric(searching.Seconds()*1e3/float64(len(searches)), "search-cpu-ms")
	b.ReportMetric(saving.Seconds()*1e3/float64(len(saves)), "save-cpu-ms")
	b.ReportMetric(float64(importing.Microseconds()), "import-cpu-µs/note")
	b.ReportMetric(loading.Seconds()*1e3, "load-cpu-ms")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(notes), "heap-B/note")
}

// milliseconds is the time that a share of all take at most.
func milliseconds(all []time.Duration, share float64) float64 {
	slices.Sort(all)
	return all[int(float64(len(all)-1)*share)].Seconds() * 1e3
}

// inside measures the tools without what brings calls to them.
func inside(b *testing.B, dir string, r benchWords) {
	b.Helper()
	m := &memory{plugin: newPlugin()}
	err := m.configure(b.Context(), sdk.Config{}, settings{
		Embedder: "local", EmbedTimeout: time.Minute, EmbedWait: time.Minute, IdleTimeout: time.Hour, MaxNote: tool.MiB, MaxNotes: 1e6, MaxUsers: 1, Snapshots: 1,
	})
	if err != nil {
		b.Fatal(err)
	}
	s := m.state.Load()
	defer s.users.Close()
	u, done, err := s.users.Use(b.Context(), "ada", dir)
	if err != nil {
		b.Fatal(err)
	}
	defer done()
	if notes, err := u.Store().Stats(b.Context(), time.Now()); err != nil || notes.Notes == 0 {
		b.Fatalf("there are no notes: %v", err)
	}
	call := func() *call { return &call{Call: new(sdk.Call), state: s, user: u, now: time.Now()} }
	var searches, saves []time.Duration
	for range 500 {
		began := time.Now()
		if _, err := search(b.Context(), call(), searchArgs{Query: r.text(5), TopK: 5, Mode: "hybrid"}); err != nil {
			b.Fatal(err)
		}
		searches = append(searches, time.Since(began))
		began = time.Now()
		if _, err := save(b.Context(), call(), saveArgs{Content: r.text(15), Category: "core", OnDuplicate: "exact"}); err != nil {
			b.Fatal(err)
		}
		saves = append(saves, time.Since(began))
	}
	b.ReportMetric(milliseconds(searches, .5), "inside-search-p50-ms")
	b.ReportMetric(milliseconds(searches, .99), "inside-search-p99-ms")
	b.ReportMetric(milliseconds(saves, .5), "inside-save-p50-ms")
}

// find makes a search that must find something.
func find(b *testing.B, p *sdktest.Plugin, query string) {
	b.Helper()
	var out hits
	r := p.Call(b.Context(), "memory_search", args{"query": query})
	if r.Error != nil || json.Unmarshal(r.Structured, &out) != nil {
		b.Fatalf("%v", r.Error)
	}
}

// cpu is the processor time of this process so far. Other work on the machine affects it less
// than the clock.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
