package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The test binary becomes the plugin, or the process to kill, if its environment says so.
func TestMain(m *testing.M) {
	if dir := os.Getenv("MEMORY_CRASH_CONTROL"); dir != "" {
		fmt.Fprintln(os.Stderr, crashControl(dir))
		os.Exit(1)
	}
	if path := os.Getenv("MEMORY_TWO_CONTROL"); path != "" {
		if err := twoControl(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv("MEMORY_AS_PLUGIN") != "" {
		if path := os.Getenv("MEMORY_PID_FILE"); path != "" {
			if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
				panic(err)
			}
		}
		newPlugin().Serve()
	}
	os.Exit(m.Run())
}

// plugin is a plugin that runs, and the user whose calls it gets.
type plugin struct {
	*sdktest.Plugin
	t *testing.T
}

// start starts the plugin in this process.
func start(t *testing.T, settings map[string]any) *plugin {
	t.Helper()
	return startIn(t, t.TempDir(), settings)
}

// startIn starts the plugin with a directory for its user.
func startIn(t *testing.T, dir string, settings map[string]any) *plugin {
	t.Helper()
	return &plugin{sdktest.Start(t, newPlugin(), sdktest.Options{Settings: settings, Context: tool.Context{UserDir: dir}}), t}
}

// must makes a call that must succeed, and reads its result into out, if that is
// not nil.
func (p *plugin) must(name string, args, out any) tool.Result {
	p.t.Helper()
	r := p.Call(p.t.Context(), name, args)
	if r.Error != nil {
		p.t.Fatalf("%s(%.200s) = %v: %v", name, asJSON(p.t, args), r.Error, r.Error.Unwrap())
	}
	if out != nil {
		if err := json.Unmarshal(r.Structured, out); err != nil {
			p.t.Fatal(err)
		}
	}
	return r
}

// save saves a note and returns its note_id.
func (p *plugin) save(args map[string]any) string {
	p.t.Helper()
	var out saved
	p.must("memory_save", args, &out)
	return out.NoteID
}

// read returns the text of a note, in as many calls as necessary.
func (p *plugin) read(id string) string {
	p.t.Helper()
	var content strings.Builder
	for next := sdk.Cursor(""); ; {
		var part got
		p.must("memory_get", args{"note_id": id, "cursor": next}, &part)
		content.WriteString(part.Content)
		if part.Next == "" || part.Next == next {
			return content.String()
		}
		next = part.Next
	}
}

// find returns the texts that a search finds.
func (p *plugin) find(args map[string]any) []string {
	p.t.Helper()
	var out hits
	p.must("memory_search", args, &out)
	texts := []string{}
	for _, h := range out.Results {
		texts = append(texts, h.Text)
	}
	return texts
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// args are the arguments of a call.
type args = map[string]any

// The plugin keeps the contract, in this process and in a separate one, so the results of each
// tool match its schema.
func TestContract(t *testing.T) {
	options := sdktest.Options{
		Env: []string{"MEMORY_AS_PLUGIN=1"},
		Calls: []sdktest.Call{
			{Tool: "memory_search", Args: args{"query": "tea"}},
			{Tool: "memory_list"},
			{Tool: "memory_stats"},
			{Tool: "memory_export"},
			{Tool: "memory_save", Args: args{"key": "drink", "content": "I like green tea"}},
			{Tool: "memory_save", Args: args{
				"content": "I like milk", "category": "conversation", "tags": []string{"food"}, "pinned": true, "expires": "2999-01-01",
				"source": "Ann", "session": "s1", "seq": 7, "occurred_at": "2026-01-31",
			}},
			{Tool: "memory_save", Args: args{"key": "long", "content": strings.Repeat("I like milk in my tea. ", 10_000)}},
			{Tool: "memory_search", Args: args{"query": "tea", "include_conversation": true}},
			{Tool: "memory_update", Args: args{"key": "drink", "content": "I like black tea"}},
			{Tool: "memory_get", Args: args{"key": "drink"}},
			{Tool: "memory_get", Args: args{"key": "long"}},
			{Tool: "memory_get", Args: args{"key": "long", "cursor": "10"}},
			{Tool: "memory_list"},
			{Tool: "memory_list", Args: args{"limit": 1}},
			{Tool: "memory_stats"},
			{Tool: "memory_export"},
			{Tool: "memory_export", Args: args{"limit": 1}},
			{Tool: "memory_export", Args: args{"format": "snapshot"}},
			{Tool: "memory_import", Args: args{"data": `{"content":"I like coffee"}`}},
			{Tool: "memory_delete", Args: args{"key": "drink"}},
		},
	}
	for _, spec := range newPlugin().Tools() {
		if spec.OutputSchema == nil {
			t.Errorf("%s does not say what its result is", spec.Name)
		}
	}
	t.Run("in process", func(t *testing.T) { sdktest.Run(t, newPlugin(), options) })
	t.Run("binary", func(t *testing.T) { sdktest.RunBinary(t, os.Args[0], options) })
}

// Every property of every tool is set, by some test, to another value than its
// default.
func TestEveryPropertyIsTested(t *testing.T) {
	var calls []sdktest.Call
	for _, c := range behaviour() {
		for _, step := range c.steps {
			calls = append(calls, sdktest.Call{Tool: step.tool, Args: step.args})
		}
	}
	untested, err := sdktest.Untested(newPlugin().Tools(), calls)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range untested {
		t.Errorf("no test sets %s to another value than its default", path)
	}
}

// step is a call and its expected answer.
type step struct {
	tool string
	args args
	// want are expected parts of the text of the result or error; a part that begins with ! must
	// be absent.
	want []string
	// fails is the expected code of the error; "" means none.
	fails tool.Code
}

// session is a series of calls of one user.
type session struct {
	name  string
	steps []step
}

func TestBehaviour(t *testing.T) {
	for _, s := range behaviour() {
		t.Run(s.name, func(t *testing.T) {
			p := start(t, nil)
			named := map[string]string{} // placeholders for a note_id, a cursor, a snapshot
			for _, step := range s.steps {
				sent := args{}
				for name, value := range step.args {
					if text, ok := value.(string); ok {
						for placeholder, actual := range named {
							text = strings.ReplaceAll(text, placeholder, actual)
						}
						value = text
					}
					sent[name] = value
				}
				r := p.Call(t.Context(), step.tool, sent)
				text := r.Text()
				if r.Error != nil {
					text = r.Error.ModelText()
				}
				if code := codeOf(r); code != step.fails {
					t.Fatalf("%s(%s) = %q %.300s, want the code %q", step.tool, asJSON(t, sent), code, text, step.fails)
				}
				for _, want := range step.want {
					part, absent := strings.CutPrefix(want, "!")
					if strings.Contains(text, part) == absent {
						t.Errorf("%s(%s) = %q, want %q", step.tool, asJSON(t, sent), text, want)
					}
				}
				var known struct {
					NoteID   string `json:"note_id"`
					Next     string `json:"next_cursor"`
					Snapshot string `json:"snapshot"`
				}
				if r.Structured != nil && json.Unmarshal(r.Structured, &known) == nil {
					for placeholder, actual := range map[string]string{"NOTE": known.NoteID, "CURSOR": known.Next, "SNAPSHOT": known.Snapshot} {
						if actual != "" {
							named[placeholder] = actual
						}
					}
				}
			}
		})
	}
}

func codeOf(r tool.Result) tool.Code {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}
