package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/memory/internal/embed/embedtest"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// as makes a call of a user.
func (p *plugin) as(user, name string, in args) tool.Result {
	p.t.Helper()
	return p.Run(p.t.Context(), tool.Call{Tool: name, Arguments: json.RawMessage(asJSON(p.t, in)), Context: tool.Context{User: user}}, tool.Sink{})
}

// A call that does not say whose it is gets no notes.
func TestNoUser(t *testing.T) {
	m := &memory{}
	m.state.Store(&state{})
	_, _, err := m.open(t.Context(), &sdk.Call{})
	var told *tool.Error
	if !errors.As(err, &told) || told.Code != tool.Unavailable || !strings.Contains(told.Message, "has no user") || told.Hint == "" {
		t.Errorf("a call without a user = %v, want code %q and a hint", err, tool.Unavailable)
	}
}

// Users whose names try to escape have separate notes, in files below their directory, even if
// the host gave all of them the same one.
func TestNamesOfUsers(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "users")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p := startIn(t, dir, nil)
	names := []string{
		"ada", "Ada", "ada ", "../ada", "../../ada", "/", ".", "ada/../bea", "bea", "ada\x00bea", "аda", "CON", "notes.db",
		strings.Repeat("a", 10<<10), strings.Repeat("a", 10<<10) + "b",
	}
	for i, user := range names {
		if r := p.as(user, "memory_save", args{"key": "k", "content": fmt.Sprintf("the shared words and secret%d", i)}); r.Error != nil {
			t.Fatalf("memory_save of %.40q = %v: %v", user, r.Error, r.Error.Unwrap())
		}
	}
	for i, user := range names {
		own := fmt.Sprintf("secret%d", i)
		for name, in := range map[string]args{
			"memory_search": {"query": "the shared words", "top_k": 20}, "memory_list": {}, "memory_get": {"key": "k"}, "memory_export": {},
		} {
			r := p.as(user, name, in)
			if r.Error != nil || !strings.Contains(r.Text(), own) || strings.Count(r.Text(), "secret") != 1 {
				t.Errorf("%s of %.40q = %.300q, %v, want its own note only", name, user, r.Text(), r.Error)
			}
		}
		if r := p.as(user, "memory_stats", args{}); !strings.HasPrefix(r.Text(), "1 memories") {
			t.Errorf("memory_stats of %.40q = %.100q", user, r.Text())
		}
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
		t.Errorf("something was made outside of the directory: %v, %v", entries, err)
	}
	// Control: what keeps them apart is the user, and nothing else.
	again := startIn(t, dir, nil)
	for i, user := range names {
		if r := again.as(user, "memory_search", args{"query": "the shared words"}); !strings.Contains(r.Text(), fmt.Sprintf("secret%d", i)) {
			t.Errorf("another process does not find the notes of %.40q: %.100q", user, r.Text())
		}
	}
}

// Any content of a note is returned unchanged, and is found.
func TestWhatNotesHold(t *testing.T) {
	p := start(t, nil)
	for name, c := range map[string]struct{ content, query string }{
		"CJK":             {"東京タワーの近くに住んでいます", "東京"},
		"emoji":           {"party 🎉 with 👩‍👩‍👧", "🎉"},
		"right to left":   {"הסיסמה נמצאת במגירה", "במגירה"},
		"mixed scripts":   {"Café ещё naïve ЁЛКА", "елка cafe"},
		"NUL":             {"front\x00back", "back"},
		"control":         {"bell\a escape\x1b[31m red", "escape"},
		"one word":        {strings.Repeat("x", 5000), strings.Repeat("x", 5000)},
		"quotes":          {`say "hello" OR 1=1; DROP TABLE note; --`, `DROP TABLE`},
		"operators":       {"NEAR(a b) AND NOT c* ^d col:e", "near col"},
		"markdown":        {"- **bold**: _it_\n\n# head", "bold"},
		"a long one":      {strings.Repeat("word ", 200_000) + "needle at the end", "needle"},
		"1 MiB, no space": {strings.Repeat("é", 1<<19), strings.Repeat("é", 40)},
	} {
		t.Run(name, func(t *testing.T) {
			id := p.save(args{"content": c.content, "on_duplicate": "force"})
			if got := p.read(id); got != c.content {
				t.Errorf("%d bytes come back as %d: %.60q", len(c.content), len(got), got)
			}
			var found hits
			p.must("memory_search", args{"query": c.query, "top_k": 20, "mode": "keyword"}, &found)
			if len(found.Results) != 1 || found.Results[0].NoteID != id {
				t.Errorf("the search finds %.200q", p.find(args{"query": c.query, "mode": "keyword"}))
			}
			p.must("memory_delete", args{"note_id": id}, nil)
		})
	}
	// Invalid UTF-8 becomes text on input.
	r := p.Run(t.Context(), tool.Call{Tool: "memory_save", Arguments: json.RawMessage("{\"content\":\"caf\xe9 bar\"}")}, tool.Sink{})
	if r.Error == nil {
		if got := p.find(args{"query": "bar"}); len(got) != 1 || got[0] != "caf\uFFFD bar" {
			t.Errorf("a note of invalid UTF-8 comes back as %q", got)
		}
	}
}

// A file that cannot be used is refused with a word to the model, and left alone.
func TestTheFileIsDamaged(t *testing.T) {
	for name, content := range map[string]string{"text": "hello", "half": "SQLite format 3\x00 and no more"} {
		dir := t.TempDir()
		p := startIn(t, dir, nil)
		p.save(args{"content": "one"})
		p.Close()
		files, err := filepath.Glob(filepath.Join(dir, "notes-*.db"))
		if err != nil || len(files) != 1 {
			t.Fatalf("files: %v, %v", files, err)
		}
		if err := os.WriteFile(files[0], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		p = startIn(t, dir, nil)
		for _, tool := range []string{"memory_list", "memory_stats", "memory_export"} {
			r := p.Call(t.Context(), tool, args{})
			if r.Error == nil || r.Error.Code != "unavailable" || !strings.Contains(r.Error.Message, "damaged") || strings.Contains(r.Error.ModelText(), dir) {
				t.Errorf("%s of a file that is %s = %v", tool, name, r.Error)
			}
		}
		if now, err := os.ReadFile(files[0]); err != nil || string(now) != content {
			t.Errorf("the file was changed to %.60q: %v", now, err)
		}
	}
}

// Deleted text is no longer in any file of the user.
func TestDeletedIsGone(t *testing.T) {
	dir := t.TempDir()
	p := startIn(t, dir, nil)
	p.save(args{"content": "another"})
	inFiles := func() bool {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(data), "xyzzyplugh") {
				return true
			}
		}
		return false
	}
	id := p.save(args{"content": "the word is xyzzyplugh"})
	if !inFiles() {
		t.Fatal("the note is in no file: the test would prove nothing")
	}
	p.must("memory_delete", args{"note_id": id}, nil)
	if inFiles() {
		t.Error("the note is still there")
	}
}

// A search by vectors finds a note that shares no word with the query, through
// both interfaces of servers, with the settings of a configuration.
func TestEmbedders(t *testing.T) {
	for name, path := range map[string]string{"ollama": "", "openai": "/v1"} {
		t.Run(name, func(t *testing.T) {
			server := embedtest.Start(t)
			p := start(t, map[string]any{
				"embedder": name, "base_url": server.URL + path, "model": "test", "api_key": "sesame",
				"embed_timeout": "1m", "embed_wait": "1m", "vector_weight": 0.7, "fts_weight": 0.3,
			})
			p.save(args{"content": "My automobile needs new tyres"})
			p.save(args{"content": "The physician is on holiday"})
			for _, mode := range []string{"vector", "hybrid"} {
				if got := p.find(args{"query": "car", "mode": mode, "top_k": 1}); len(got) != 1 || !strings.Contains(got[0], "automobile") {
					t.Errorf("%s finds %q, want the automobile", mode, got)
				}
			}
			if got := p.find(args{"query": "car", "mode": "keyword"}); len(got) != 0 {
				t.Errorf("keyword finds %q", got)
			}
			if r := p.must("memory_stats", nil, nil); !strings.Contains(r.Text(), "embedder "+name+":test:") || strings.Contains(r.Text(), "127.0.0.1") || !strings.Contains(r.Text(), "2 of 2 passages") {
				t.Errorf("memory_stats = %q", r.Text())
			}
			for _, asked := range server.Requests() {
				if asked.Model != "test" || asked.Authorization != "Bearer sesame" {
					t.Errorf("the server was asked for %q with %q", asked.Model, asked.Authorization)
				}
			}
		})
	}
	// The local embedder has nothing of the meaning.
	p := start(t, nil)
	p.save(args{"content": "My automobile needs new tyres"})
	if got := p.find(args{"query": "car"}); len(got) != 0 {
		t.Errorf("without a model %q is found", got)
	}
}

// Bounds that the settings name hold.
func TestBounds(t *testing.T) {
	p := start(t, map[string]any{"max_note": "20B", "max_notes": 2, "snapshots": 1, "max_users": 1, "idle_timeout": "1m", "keep_core": "24h", "keep_daily": "24h", "keep_conversation": "24h", "memory_budget": "1MiB"})
	if r := p.Call(t.Context(), "memory_save", args{"content": "a note of 21 bytes..."}); codeOf(r) != tool.InvalidArgument {
		t.Errorf("a note that is too large = %v", r.Error)
	}
	p.save(args{"content": "one"})
	p.save(args{"content": "two"})
	if r := p.Call(t.Context(), "memory_save", args{"content": "three"}); codeOf(r) != tool.ResourceExhausted {
		t.Errorf("a third note = %v", r.Error)
	}
	if r := p.Call(t.Context(), "memory_import", args{"data": `{"content":"three"}`}); codeOf(r) != tool.ResourceExhausted {
		t.Errorf("a third note by import = %v", r.Error)
	}
	var first, second exported
	p.must("memory_export", args{"format": "snapshot"}, &first)
	p.must("memory_export", args{"format": "snapshot"}, &second)
	if r := p.Call(t.Context(), "memory_import", args{"snapshot": first.Snapshot}); first.Snapshot != second.Snapshot && codeOf(r) != tool.NotFound {
		t.Errorf("a snapshot that should be gone = %v", r.Error)
	}
	p.must("memory_import", args{"snapshot": second.Snapshot}, nil)
}

// Results of search, list and memory_get stay within the host's output limit for any notes: a
// longer result would be an error.
func TestResultsFit(t *testing.T) {
	p := start(t, nil)
	for i := range 30 {
		tags := make([]string, maxTags)
		for j := range tags {
			tags[j] = strings.Repeat(fmt.Sprintf("<%d>", j), 80)
		}
		p.save(args{"content": fmt.Sprintf("garden %d ", i) + strings.Repeat("🎉\x01<", 400), "tags": tags, "on_duplicate": "force"})
	}
	const most = 64 << 10
	var found hits
	if r := p.must("memory_search", args{"query": "garden", "top_k": 20}, &found); len(r.Structured) > most || len(found.Results) != 20 {
		t.Errorf("a search of %d notes has %d bytes", len(found.Results), len(r.Structured))
	}
	listed := map[string]bool{}
	for cursor := ""; ; {
		var page struct {
			Notes []shown `json:"notes"`
			Next  string  `json:"next_cursor"`
		}
		if r := p.must("memory_list", args{"limit": 100, "cursor": cursor}, &page); len(r.Structured) > most {
			t.Errorf("a list of %d notes has %d bytes", len(page.Notes), len(r.Structured))
		}
		for _, n := range page.Notes {
			listed[n.NoteID] = true
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(listed) != 30 {
		t.Errorf("%d notes are listed, want 30", len(listed))
	}
	for id := range listed {
		if r := p.must("memory_get", args{"note_id": id}, nil); len(r.Structured) > most {
			t.Errorf("memory_get has %d bytes", len(r.Structured))
		}
	}
}

// An export gets past notes of any size: what does not fit into a page is named, and
// nothing else is missing.
func TestExportsFit(t *testing.T) {
	p := start(t, nil)
	large := map[string]bool{} // the note_id of those that do not fit
	var small []string
	for i, content := range []string{
		strings.Repeat("a", 1<<20), strings.Repeat(`"`, 300<<10), // at first, and one after the other
		"one", strings.Repeat("b", 600<<10), // larger than a page is usually, but it fits
		strings.Repeat("\x01", 200<<10), "two", strings.Repeat("c ", 200<<10), "three", strings.Repeat("é", 1<<19),
	} {
		id := p.save(args{"content": content, "on_duplicate": "force"})
		switch i {
		case 0, 1, 4, 8:
			large[id] = true
		default:
			small = append(small, id)
		}
	}
	for _, limit := range []int{1, 3, 200} {
		var texts strings.Builder
		var got []string
		left := map[string]bool{}
		pages := 0
		for cursor := ""; ; pages++ {
			var page exported
			r := p.must("memory_export", args{"limit": limit, "cursor": cursor}, &page)
			if most := int(tool.MiB); len(r.Structured) > most || len(r.Text()) > most {
				t.Errorf("page %d has %d bytes, and %d of text", pages, len(r.Structured), len(r.Text()))
			}
			texts.WriteString(r.Text())
			for line := range strings.Lines(page.Data) {
				var n shown
				if err := json.Unmarshal([]byte(line), &n); err != nil {
					t.Fatal(err)
				}
				got = append(got, n.NoteID)
			}
			for _, id := range page.LeftOut {
				left[id] = true
				if !strings.Contains(r.Text(), "[left out, too large for a page: read "+id) {
					t.Errorf("the text does not name %s", id)
				}
			}
			if told := page.Notes + len(page.LeftOut); told == 0 || told > limit {
				t.Errorf("page %d of at most %d notes tells of %d", pages, limit, told)
			}
			if cursor = string(page.Next); cursor == "" {
				break
			}
		}
		if diff := cmp.Diff(small, got); diff != "" {
			t.Errorf("exported %d at a time (-want +got):\n%s", limit, diff)
		}
		if diff := cmp.Diff(large, left); diff != "" {
			t.Errorf("left out, %d at a time (-want +got):\n%s", limit, diff)
		}
		if limit == 200 {
			to := start(t, nil)
			if r := to.must("memory_import", args{"data": texts.String()}, nil); !strings.Contains(r.Text(), fmt.Sprintf("Imported %d notes", len(small))) {
				t.Errorf("memory_import of the texts = %q", r.Text())
			}
		}
	}
}
