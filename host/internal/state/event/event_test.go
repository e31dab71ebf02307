package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/sdk/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNext(t *testing.T) {
	b := NewBus()
	b.Publish("ada", AgentState{"s", Idle}) // before there is a watcher
	s := b.Subscribe("")
	b.Publish("ada", AgentState{"s", ToolExecution})
	b.Publish("", CatalogChanged{3})
	var got []string
	for range 2 {
		e := next(t, s)
		got = append(got, line(t, e))
		if s.Position() != e.ID {
			t.Errorf("Position = %s after event %s", s.Position(), e.ID)
		}
	}
	want := []string{
		`agent.state ada {"session":"s","state":"tool_execution"}`,
		`catalog.changed  {"tools":3}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNextWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBus()
		var watchers sync.WaitGroup
		for range 10 { // each gets each event
			s := b.Subscribe("")
			watchers.Go(func() {
				for i := range 3 {
					if e := next(t, s); e.Data != (CatalogChanged{i}) {
						t.Errorf("event %d is %v", i, e.Data)
					}
				}
			})
		}
		for i := range 3 {
			synctest.Wait()
			b.Publish("", CatalogChanged{i})
		}
		watchers.Wait()
	})
}

func TestNextEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		s := NewBus().Subscribe("")
		time.AfterFunc(time.Hour, func() { cancel(gone) })
		if _, err := s.Next(ctx); !errors.Is(err, gone) {
			t.Errorf("Next = %v, want the cause", err)
		}
	})
}

func TestSubscribeAfter(t *testing.T) {
	b, earlier := NewBus(), NewBus()
	for i := range 5 {
		b.Publish("", CatalogChanged{i})
		earlier.Publish("", CatalogChanged{i})
	}
	for _, tt := range []struct {
		name, after string
		gap         bool
		want        []int // CatalogChanged
	}{
		{"the second", b.id(2), false, []int{2, 3, 4}},
		{"before the first", b.id(0), false, []int{0, 1, 2, 3, 4}},
		{"the last", b.id(5), false, nil},
		{"one that is not yet", b.id(6), true, []int{0, 1, 2, 3, 4}},
		{"one of an earlier run", earlier.id(2), true, []int{0, 1, 2, 3, 4}},
		{"no id", "x", true, []int{0, 1, 2, 3, 4}},
		{"no number", b.boot + "-x", true, []int{0, 1, 2, 3, 4}},
		{"a huge number", b.boot + "-18446744073709551616", true, []int{0, 1, 2, 3, 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := b.Subscribe(tt.after)
			if tt.gap {
				if got := line(t, next(t, s)); got != `gap  {"missed":null}` {
					t.Errorf("first event = %s, want a gap of unknown length", got)
				}
			}
			for _, want := range tt.want {
				if e := next(t, s); e.Data != (CatalogChanged{want}) {
					t.Errorf("event = %v, want %d", e.Data, want)
				}
			}
			if e, changed := s.take(); changed == nil {
				t.Errorf("one event more: %v", e)
			}
		})
	}
}

// A slow reader is told how many events it missed, and continues from there.
func TestSlowWatcher(t *testing.T) {
	b := NewBus()
	slow := b.Subscribe("")
	for i := range maxEvents + 7 {
		b.Publish("", CatalogChanged{i})
	}
	gap := next(t, slow)
	if got := line(t, gap); got != `gap  {"missed":7}` {
		t.Errorf("first event = %s, want a gap of 7", got)
	}
	again := b.Subscribe(gap.ID) // as after a new connection
	for i := range maxEvents {
		want := CatalogChanged{7 + i}
		if e := next(t, slow); e.Data != want {
			t.Fatalf("event %d after the gap is %v, want %v", i, e.Data, want)
		}
		if e := next(t, again); e.Data != want {
			t.Fatalf("event %d after a new connection is %v, want %v", i, e.Data, want)
		}
	}
}

func TestBusKeepsFewBytes(t *testing.T) {
	b := NewBus()
	s := b.Subscribe("")
	params := json.RawMessage(`"` + strings.Repeat("x", int(maxValue)-2) + `"`)
	const published = 1000
	for range published {
		b.Publish("ada", ToolCall{ID: "tc_1", Params: params, Tier: tool.ReadOnly})
		if b.bytes > int(maxBytes) {
			t.Fatalf("the bus keeps %d bytes, more than %s", b.bytes, maxBytes)
		}
	}
	e := next(t, s)
	missed, ok := e.Data.(Gap)
	if !ok || *missed.Missed < published/3 || *missed.Missed > published*2/3 {
		t.Errorf("first event = %v, want a gap of about half of %d", line(t, e), published)
	}
	sum := 0
	for at := b.oldest; at < b.next; at++ {
		sum += b.ring[at%maxEvents].size
	}
	if sum != b.bytes {
		t.Errorf("the bus counts %d bytes, and keeps %d", b.bytes, sum)
	}
}

func TestFit(t *testing.T) {
	large := strings.Repeat("é", 10_000)
	largeJSON, err := json.Marshal(large)
	if err != nil {
		t.Fatal(err)
	}
	failed := tool.Errorf(tool.NotFound, "%s", large)
	for _, tt := range []struct {
		name string
		data Data
		want string
	}{
		{
			"arguments",
			ToolCall{ID: "tc_1", Tool: "t", Plugin: "p", Params: largeJSON, Tier: tool.ReadOnly},
			`{"id":"tc_1","tool":"t","plugin":"p","params_bytes":20002,"tier":"read_only","requires_approval":false,"verdict":"","rule":""}`,
		},
		{
			"a result", ResultOf("tc_1", "t", tool.TextResult(large), time.Second),
			`{"id":"tc_1","tool":"t","status":"success","result_bytes":20001,"execution_time_ms":1000}`,
		},
		{
			"a result that somebody made",
			ToolResult{ID: "tc_1", Tool: "t", Status: Success, Result: &ResultData{Content: large}},
			`{"id":"tc_1","tool":"t","status":"success","result_bytes":20000,"execution_time_ms":0}`,
		},
		{
			"a message",
			ToolProgress{"tc_1", tool.Progress{Progress: 1, Message: large}},
			`{"id":"tc_1","progress":1,"message":"` + large[:4096] + `…"}`,
		},
		{
			"an error", ResultOf("tc_1", "t", tool.ErrorResult(failed), 0),
			`{"id":"tc_1","tool":"t","status":"error","error":{"code":"NOT_FOUND","message":"` + large[:4096] + `…"},"execution_time_ms":0}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := NewBus()
			s := b.Subscribe("")
			b.Publish("ada", tt.data)
			got, err := next(t, s).JSON()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if len(failed.Message) != len(large) {
		t.Error("fitting the event changed the error of the call")
	}
}

func TestResultOf(t *testing.T) {
	rejected := tool.Errorf(tool.Rejected, "User rejected the operation")
	for _, tt := range []struct {
		name   string
		result tool.Result
		want   string
	}{
		{
			"text and structure",
			tool.Result{Content: []tool.Content{tool.Text("a"), tool.Text("b")}, Structured: json.RawMessage(`{"x":1}`)},
			`{"id":"i","tool":"t","status":"success","result":{"content":"a\nb","structured":{"x":1}},"execution_time_ms":2}`,
		},
		{"nothing", tool.Result{}, `{"id":"i","tool":"t","status":"success","execution_time_ms":2}`},
		{
			"an image",
			tool.Result{Content: []tool.Content{{Kind: tool.KindImage, Data: []byte("x")}}},
			`{"id":"i","tool":"t","status":"success","execution_time_ms":2}`,
		},
		{
			"a rejection", tool.ErrorResult(rejected),
			`{"id":"i","tool":"t","status":"rejected","reason":"User rejected the operation","execution_time_ms":2}`,
		},
		{
			"a failure with output",
			tool.Result{Content: []tool.Content{tool.Text("a")}, Error: tool.Errorf(tool.Failed, "no").WithHint("do")},
			`{"id":"i","tool":"t","status":"error","result":{"content":"a"},"error":{"code":"FAILED","message":"no","hint":"do"},"execution_time_ms":2}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := json.Marshal(ResultOf("i", "t", tt.result, 2*time.Millisecond))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Every kind that data can have is listed.
func TestKinds(t *testing.T) {
	for _, data := range []Data{
		ToolCall{}, ToolApproval{}, AgentState{}, ToolProgress{}, ToolResult{}, FileChanged{}, PluginState{}, CatalogChanged{}, BrokenClaim{}, Gap{},
	} {
		if !slices.Contains(Kinds(), data.kind()) {
			t.Errorf("Kinds() misses %s", data.kind())
		}
	}
}

func TestPublishWhileOthersRead(t *testing.T) {
	b := NewBus()
	const writers, each = 4, 2000
	var all sync.WaitGroup
	for range 3 {
		s := b.Subscribe("")
		all.Go(func() {
			for seen := uint64(0); seen < writers*each; {
				e := next(t, s)
				seen++
				if gap, ok := e.Data.(Gap); ok {
					seen += *gap.Missed - 1
				} else if _, err := e.JSON(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range writers {
		all.Go(func() {
			for i := range each {
				b.Publish("ada", CatalogChanged{i})
			}
		})
	}
	all.Wait()
}

func BenchmarkPublish(b *testing.B) {
	data := ToolCall{
		ID: "tc_01a1fa64-7000-7000-8000-000000000000", Tool: "write_file", Plugin: "fs", Session: "cli", Tier: tool.SideEffecting,
		Params: json.RawMessage(`{"path":"a.txt","content":"` + strings.Repeat("x", 1000) + `"}`),
	}
	for _, watchers := range []int{0, 1} {
		b.Run(fmt.Sprintf("watchers=%d", watchers), func(b *testing.B) {
			bus := NewBus()
			ctx, cancel := context.WithCancel(b.Context())
			var all sync.WaitGroup
			for range watchers {
				s := bus.Subscribe("")
				all.Go(func() {
					for e, err := s.Next(ctx); err == nil; e, err = s.Next(ctx) {
						_, _ = e.JSON()
					}
				})
			}
			b.ReportAllocs()
			for b.Loop() {
				bus.Publish("ada", data)
			}
			cancel()
			all.Wait()
		})
	}
}

func next(t *testing.T, s *Subscription) Event {
	t.Helper()
	e, err := s.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func line(t *testing.T, e Event) string {
	t.Helper()
	text, err := e.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %s %s", e.Kind, e.User, text)
}

// Whatever a watcher says it has seen last, what follows is complete, or begins
// with a gap.
func FuzzSubscribe(f *testing.F) {
	b := NewBus()
	for i := range 5 {
		b.Publish("", CatalogChanged{i})
	}
	for _, seed := range []string{"", "x", b.id(2), b.id(99), b.boot, b.boot + "-", "-1", b.boot + "-+2", b.boot + "--2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, after string) {
		s := b.Subscribe(after)
		e, changed := s.take()
		switch {
		case after == "" || after == b.id(5):
			if changed == nil {
				t.Errorf("Subscribe(%q) gives %v, want nothing yet", after, e)
			}
			return
		case changed != nil:
			t.Fatalf("Subscribe(%q) gives nothing", after)
		case e.Kind == KindGap:
			e, _ = s.take()
			if e.ID != b.id(1) {
				t.Errorf("Subscribe(%q) goes on with %s after the gap, want %s", after, e.ID, b.id(1))
			}
			return
		}
		before, err := strconv.Atoi(strings.TrimPrefix(after, b.boot+"-"))
		if want := b.id(uint64(before + 1)); err != nil || e.ID != want {
			t.Errorf("Subscribe(%q) goes on with %s, want %s", after, e.ID, want)
		}
	})
}
