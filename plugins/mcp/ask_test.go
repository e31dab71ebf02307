package main

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// An address that the server wants the user to open is shown as text.
func TestAskToOpen(t *testing.T) {
	t.Parallel()
	var question string
	p := bridge(t, "asks to open", nil, sdktest.Options{Answer: func(text string, _ json.RawMessage) (any, bool) {
		question = text
		return nil, true
	}})
	if got := p.Call(t.Context(), "peer_run", nil); !strings.Contains(got.Text(), `"action":"accept"`) {
		t.Errorf("run = %q, %v", got.Text(), got.Error)
	}
	if want := "The MCP server peer asks you to open this address:\nhttps://example.com/\\u202e\nSign in."; question != want {
		t.Errorf("the question is %q, want %q", question, want)
	}
}

// A question that could belong to several calls reaches no user.
func TestAskOfSeveralCalls(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	p := bridge(t, "asks when two calls run", nil, sdktest.Options{Answer: func(string, json.RawMessage) (any, bool) {
		asked.Add(1)
		return nil, true
	}})
	runs, ended := make(chan struct{}), make(chan tool.Result, 1)
	go func() { // ends with the call
		ended <- p.Run(t.Context(), tool.Call{Tool: "peer_run"}, tool.Sink{Progress: func(tool.Progress) { close(runs) }})
	}()
	<-runs
	if got := p.Call(t.Context(), "peer_run", nil); !strings.Contains(got.Text(), `"action":"decline"`) {
		t.Errorf("the second call = %q, %v", got.Text(), got.Error)
	}
	if got := <-ended; got.Error != nil {
		t.Errorf("the first call = %v", got.Error)
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the user was asked %d times", n)
	}
}

func TestForm(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`null`: `{"properties":{},"type":"object"}`,
		`{"type":"object","properties":{"a":{"type":"number","x":1,"description":"how many"}}}`: `{"properties":{"a":{"description":"how many","type":"number"}},"type":"object"}`,
		`{"properties":{"a":{"type":"array","items":{"enum":["x"]}}}}`:                          `the property a: a choice of several values is not supported`,
		`{"properties":{"a":{"oneOf":[{"const":1}]}}}`:                                          `the property a: an alternative without a const is not supported`,
		`{"properties":{"a\u200b":true}}`:                                                       `the property "a\u200b" is not a schema`,
	} {
		var requested any
		if err := json.Unmarshal([]byte(schema), &requested); err != nil {
			t.Fatal(err)
		}
		got, err := form(requested)
		if err == nil && string(got) != want || err != nil && err.Error() != want {
			t.Errorf("the form of %s is %s, %v; want %s", schema, got, err, want)
		}
	}
}
