package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Whatever a body holds: it is read as the strict reader of a standard library
// would, or it is refused with a whole problem.
func FuzzReadJSON(f *testing.F) {
	for _, seed := range []string{
		`{"tool":"t","arguments":{"a":[1,2]},"always":true}`, `{}`, ` { } `, `[]`, `null`, ``, `{"tool":"a","tool":"b"}`,
		`{"tool":"t"}x`, `{"tool":"\ud800"}`, `{"always":1}`, `{"Tool":"t"}`, `{"arguments":1e999}`, `{"a`, "\xff", `{"tool":"t",}`,
		strings.Repeat("[", 200), `{"arguments":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var tool string
		var arguments json.RawMessage
		var always bool
		err := readJSON(text, fields{"tool": &tool, "arguments": &arguments, "always": &always})
		if err != nil {
			p, ok := errors.AsType[*Problem](err)
			if !ok || p.Detail == "" || p.Status != http.StatusBadRequest {
				t.Fatalf("readJSON(%q) = %v, want a problem", text, err)
			}
			if len(p.Detail) > 1000 || strings.ContainsFunc(p.Detail, func(r rune) bool { return r < ' ' }) {
				t.Errorf("readJSON(%q) says %q", text, p.Detail)
			}
			return
		}
		var want struct {
			Tool      string          `json:"tool"`
			Arguments json.RawMessage `json:"arguments"`
			Always    bool            `json:"always"`
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&want); err != nil {
			t.Fatalf("readJSON takes %q, encoding/json says %v", text, err)
		}
		if tool != want.Tool || always != want.Always || !bytes.Equal(arguments, want.Arguments) {
			t.Errorf("readJSON(%q) = %q, %s, %v; want %+v", text, tool, arguments, always, want)
		}
	})
}

// A body whose length is not known beforehand is bounded all the same.
func TestReadBodyBoundsWhatItReads(t *testing.T) {
	endless := &counter{}
	r := httptest.NewRequest(http.MethodPost, "/v1/calls", endless)
	r.Header.Set("Content-Type", "application/json")
	err := readBody(httptest.NewRecorder(), r, fields{})
	if p, ok := errors.AsType[*Problem](err); !ok || p.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("readBody = %v, want 413", err)
	}
	if endless.n > 2*int(maxBody) {
		t.Errorf("read %d bytes of an endless body", endless.n)
	}
}

// counter is an endless body.
type counter struct{ n int }

func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	c.n += len(p)
	return len(p), nil
}

func TestDepthOf(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int
	}{
		{`{}`, 1}, {`1`, 0}, {`[[],[[]]]`, 3}, {`{"a":"[[[["}`, 1}, {`{"a\"[[":[]}`, 2}, {`]]]`, 0}, {``, 0},
	} {
		if got := depthOf([]byte(tt.text)); got != tt.want {
			t.Errorf("depthOf(%s) = %d, want %d", tt.text, got, tt.want)
		}
	}
}

func TestWait(t *testing.T) {
	for _, tt := range []struct {
		text string
		want time.Duration
		ok   bool
	}{
		{"", 0, true},
		{"30s", 30 * time.Second, true},
		{"30", 30 * time.Second, true},
		{"1.5s", 1500 * time.Millisecond, true},
		{"24h", maxWait, true},
		{"9999999999", maxWait, true},
		{"-1s", 0, false},
		{"-1", 0, false},
		{"soon", 0, false},
		{"99999999999999999999", 0, false},
	} {
		q := readQuery(httptest.NewRequest(http.MethodGet, "/?wait="+tt.text, nil), "wait")
		if got := q.wait(); got != tt.want || (q.err() == nil) != tt.ok {
			t.Errorf("wait %q = %v, %v; want %v, ok %v", tt.text, got, q.err(), tt.want, tt.ok)
		}
	}
}

func TestReadPrefer(t *testing.T) {
	for _, tt := range []struct {
		headers []string
		want    prefer
		ok      bool
	}{
		{nil, prefer{}, true},
		{[]string{"respond-async, wait=10"}, prefer{async: true, waits: true, wait: 10 * time.Second}, true},
		{[]string{"Wait = \"5\"; x=y", "wait=7"}, prefer{waits: true, wait: 5 * time.Second}, true},
		{[]string{"return=minimal", "foo"}, prefer{}, true},
		{[]string{"wait=4294967295"}, prefer{}, false},
		{[]string{"wait=100000"}, prefer{waits: true, wait: maxWait}, true},
		{[]string{"wait=-1"}, prefer{}, false},
		{[]string{"wait"}, prefer{}, false},
	} {
		got, err := readPrefer(http.Header{"Prefer": tt.headers})
		if (err == nil) != tt.ok || tt.ok && got != tt.want {
			t.Errorf("readPrefer(%q) = %+v, %v; want %+v, ok %v", tt.headers, got, err, tt.want, tt.ok)
		}
	}
}
