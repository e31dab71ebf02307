package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
	"github.com/toolhost/toolhost/sdk/worker"
)

// functions are what the test binary does in processes of its own.
var functions = map[string]worker.Function{
	"join": func(in worker.Input) (any, error) {
		var words []string
		if err := json.Unmarshal(in.Request, &words); err != nil {
			return nil, err
		}
		words = append(words, string(in.Body))
		if in.File != nil {
			text, err := io.ReadAll(io.NewSectionReader(in.File, 0, 100))
			if err != nil {
				return nil, err
			}
			words = append(words, string(text))
		}
		return strings.Join(words, " "), nil
	},
	"refuse": func(worker.Input) (any, error) {
		return "half", tool.Errorf(tool.NotFound, "there is no such thing").WithHint("look elsewhere")
	},
	"panic":   func(worker.Input) (any, error) { panic("no") },
	"loop":    func(worker.Input) (any, error) { return forever(), nil },
	"long":    func(worker.Input) (any, error) { return strings.Repeat("x", 1<<20), nil },
	"consume": func(worker.Input) (any, error) { return consume(), nil },
}

func forever() int {
	for n := 0; ; n++ {
		if n < 0 {
			return n
		}
	}
}

func consume() int {
	var all [][]byte
	for {
		block := make([]byte, 16<<20)
		for i := range block {
			block[i] = 1
		}
		all = append(all, block)
		if len(all) > 1000 {
			return len(all)
		}
	}
}

func TestMain(m *testing.M) {
	worker.Serve(functions)
	os.Exit(m.Run())
}

func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("file"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	job := worker.Job{Function: "join", Request: []string{"a", "<b>\n"}, Body: []byte("body\n\x00"), File: file, Time: 10 * time.Second}
	var got string
	if err := worker.Run(t.Context(), job, &got); err != nil || got != "a <b>\n body\n\x00 file" {
		t.Errorf("Run = %q, %v", got, err)
	}
	if _, err := file.Stat(); err != nil {
		t.Errorf("the caller's file: %v", err)
	}
	job.File, job.Body = nil, nil
	if err := worker.Run(t.Context(), job, &got); err != nil || got != "a <b>\n " {
		t.Errorf("Run without a file = %q, %v", got, err)
	}
	var refused *tool.Error
	if err := worker.Run(t.Context(), worker.Job{Function: "refuse", Time: 10 * time.Second}, &got); !errors.As(err, &refused) || refused.Code != tool.NotFound || refused.Hint != "look elsewhere" || got != "half" {
		t.Errorf("Run of a function that refuses = %q, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := worker.Run(ctx, job, &got); !errors.Is(err, context.Canceled) {
		t.Errorf("Run of a canceled call = %v", err)
	}
}

func ExampleRun() {
	// main calls worker.Serve(functions) before anything else.
	var answer string
	err := worker.Run(context.Background(), worker.Job{Function: "join", Request: []string{"one"}, Body: []byte("two"), Time: 10 * time.Second}, &answer)
	fmt.Println(answer, err)
	// Output: one two <nil>
}
