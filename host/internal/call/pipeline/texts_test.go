package pipeline_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// textsTable is the table of texts that callers rely on.
type textsTable struct {
	Prefix string
	Texts  []struct {
		When string
		Code tool.Code
		Text string
	}
}

func readTexts(t *testing.T) textsTable {
	t.Helper()
	dir := os.Getenv("TOOLHOST_CASES")
	if dir == "" {
		dir = filepath.Join("testdata", "cases")
	}
	data, err := os.ReadFile(filepath.Join(dir, "texts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table textsTable
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Texts) == 0 || table.Prefix == "" {
		t.Fatal("the table of texts is empty")
	}
	return table
}

// TestCasesTexts checks the texts in the table that the host itself writes.
func TestCasesTexts(t *testing.T) {
	table := readTexts(t)
	checks := map[string]func(t *testing.T, text string, code tool.Code){
		"a required argument is missing": func(t *testing.T, text string, code tool.Code) {
			t.Helper()
			p := newPipeline(t, pipeline.Options{Runner: answer(tool.Result{})}, echoSpec())
			got := p.Call(t.Context(), request("echo", `{}`)).Result.Error
			want := strings.Replace(text, "{name}", "text", 1)
			if got == nil || got.Code != code || got.Message != want {
				t.Fatalf("got %v, want %s: %s", got, code, want)
			}
			if !strings.HasPrefix(got.ModelText(), table.Prefix+want) {
				t.Errorf("a model reads %q, want it to begin %q", got.ModelText(), table.Prefix+want)
			}
		},
		"output longer than its budget": func(t *testing.T, text string, _ tool.Code) {
			t.Helper()
			got := callWith(t, tool.TextResult(strings.Repeat("x", 1_142_857))).Text()
			want := strings.Replace(text, "{bytes with thousands separators}", "1,142,857", 1)
			if !strings.HasSuffix(got, "\n"+want) {
				t.Errorf("the output ends %q, want %q on a line of its own", got[len(got)-80:], want)
			}
		},
		"mode read_only and the tool is not": func(t *testing.T, text string, code tool.Code) {
			t.Helper()
			h := newHost(t, pipeline.Options{Runner: &counter{}, Policy: rules(t, policy.Options{Mode: policy.ReadOnly})}, addSpec())
			got := h.Call(t.Context(), request("add", `{"text":"a"}`)).Result.Error
			wantText(t, got, code, strings.Replace(text, "{tool}", "add", 1))
		},
		"rate limit": func(t *testing.T, text string, code tool.Code) {
			t.Helper()
			h := newHost(t, pipeline.Options{
				Runner: &counter{}, Policy: rules(t, policy.Options{Mode: policy.Autonomous}), ActionsPerHour: 1,
			}, addSpec())
			h.Call(t.Context(), request("add", `{"text":"a"}`))
			wantText(t, h.Call(t.Context(), request("add", `{"text":"a"}`)).Result.Error, code, text)
		},
		"a call was refused by a person": func(t *testing.T, text string, code tool.Code) {
			t.Helper()
			h := newHost(t, pipeline.Options{Runner: &counter{}}, addSpec())
			f, question := h.begin(t, request("add", `{"text":"a"}`))
			h.answer(t, question.ID, false)
			wantText(t, f.Wait(t.Context(), operation.Forever).Result.Error, code, text)
		},
		// Plugins write these; the host must pass them on unchanged.
		"write_file succeeded":                     handedOn,
		"a path that policy or the plugin forbids": handedOn,
		"file does not exist":                      handedOn,
		"a file cannot be read":                    handedOn,
		"a file cannot be written":                 handedOn,
		"a command ended with a code other than 0": handedOn,
		"a command could not be started":           handedOn,
		"both streams have output":                 handedOn,
		"memory saved under a key":                 handedOn,
		"nothing found in memory":                  handedOn,
		"memories found":                           handedOn,
	}
	ran := 0
	for _, row := range table.Texts {
		check, ok := checks[row.When]
		if !ok {
			continue
		}
		t.Run(row.When, func(t *testing.T) { check(t, row.Text, row.Code) })
		ran++
	}
	t.Logf("ran %d of %d rows", ran, len(table.Texts))
	if ran != len(checks) {
		t.Errorf("ran %d rows, want the %d that this package knows", ran, len(checks))
	}
}

// wantText checks the code and the text of an error.
func wantText(t *testing.T, got *tool.Error, code tool.Code, text string) {
	t.Helper()
	if got == nil || got.Code != code || got.Message != text {
		t.Errorf("got %v, want %s: %s", got, code, text)
	}
}

// handedOn checks that a plugin's text reaches the caller unchanged.
func handedOn(t *testing.T, text string, code tool.Code) {
	t.Helper()
	if code == "" {
		if got := callWith(t, tool.TextResult(text)); got.Error != nil || got.Text() != text {
			t.Errorf("got %q, %v, want %q", got.Text(), got.Error, text)
		}
		return
	}
	got := callWith(t, tool.ErrorResult(&tool.Error{Code: code, Message: text})).Error
	if got == nil || got.Code != code || got.Message != text {
		t.Errorf("got %v, want %s: %s", got, code, text)
	}
}
