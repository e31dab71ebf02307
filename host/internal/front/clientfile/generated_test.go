package clientfile_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tailscale/hujson"

	"github.com/toolhost/toolhost/host/internal/front/clientfile"
)

// document writes a random JSON object with comments and trailing commas.
type document struct {
	*rand.Rand
	text strings.Builder
	end  string // of lines
	n    int    // names so far
}

// space writes white space, perhaps with comments.
func (d *document) space() {
	for d.IntN(3) == 0 {
		d.text.WriteString([]string{" ", "\t", d.end, d.end + "  ", "/* , } é */", "// \"mcpServers\": {" + d.end, "/**/ "}[d.IntN(7)])
	}
}

func (d *document) value(depth int) {
	if depth == 0 || d.IntN(3) > 0 {
		d.text.WriteString([]string{"null", "true", "1.50", "12345678901234567890", `"// no comment"`, `"\u00e9}"`, "-0", "{}", "[ ]"}[d.IntN(9)])
		return
	}
	if d.IntN(2) == 0 {
		d.object(depth, "", nil)
		return
	}
	d.text.WriteByte('[')
	for range 1 + d.IntN(3) {
		d.space()
		d.value(depth - 1)
		d.space()
		d.text.WriteByte(',')
	}
	d.text.WriteByte(']')
}

// object writes an object. If inner is given, it writes the value of one name.
func (d *document) object(depth int, name string, inner func()) {
	d.text.WriteByte('{')
	members := d.IntN(4)
	at := -1
	if inner != nil {
		members++
		at = d.IntN(members)
	}
	for i := range members {
		d.space()
		write := func() { d.value(depth - 1) }
		key := fmt.Sprintf("n%d é", d.n)
		if d.n++; i == at {
			key, write = name, inner
		}
		d.text.WriteString(`"` + key + `"`)
		d.space()
		d.text.WriteByte(':')
		d.space()
		write()
		d.space()
		if i < members-1 || d.IntN(2) == 0 {
			d.text.WriteByte(',')
		}
	}
	d.space()
	d.text.WriteByte('}')
}

// TestGenerated sets a server in generated documents. Only the entry changes: the rest has the
// same meaning, and if there was no entry, all the old text is there in its order. Setting it
// again changes nothing.
func TestGenerated(t *testing.T) {
	entry := server{"/a b/ü"}
	edit := clientfile.JSON([]string{"mcpServers", "toolhost"}, entry)
	const rounds = 200
	found := [3]int{}
	for seed := range uint64(rounds) {
		d := &document{Rand: rand.New(rand.NewPCG(seed, 7)), end: []string{"\n", "\r\n"}[seed%2]}
		has := d.IntN(3) // 0: nothing, 1: other servers, 2: the entry
		found[has]++
		d.space()
		switch has {
		case 0:
			d.object(3, "", nil)
		case 1:
			d.object(3, "mcpServers", func() { d.object(2, "", nil) })
		case 2:
			d.object(3, "mcpServers", func() { d.object(2, "toolhost", func() { d.value(2) }) })
		}
		d.space()
		old := d.text.String()
		got, err := edit([]byte(old))
		if err != nil {
			t.Fatalf("seed %d: %v in\n%s", seed, err, old)
		}
		before, after := meaning(t, old), meaning(t, string(got))
		servers, _ := after["mcpServers"].(map[string]any)
		if want := map[string]any{"command": entry.Command}; !reflect.DeepEqual(servers["toolhost"], want) {
			t.Errorf("seed %d: the entry is %v, want %v", seed, servers["toolhost"], want)
		}
		delete(servers, "toolhost")
		if was, ok := before["mcpServers"].(map[string]any); ok {
			delete(was, "toolhost")
		} else if len(servers) == 0 {
			delete(after, "mcpServers")
		}
		if !reflect.DeepEqual(before, after) {
			t.Errorf("seed %d: other settings changed:\n%s\nbecame\n%s", seed, old, got)
		}
		if has < 2 && !holds(string(got), old) {
			t.Errorf("seed %d: text is lost:\n%s\nbecame\n%s", seed, old, got)
		}
		if again, err := edit(got); err != nil || string(again) != string(got) {
			t.Errorf("seed %d: a second time: %v,\n%s\nbecame\n%s", seed, err, got, again)
		}
	}
	if found[0]*found[1]*found[2] == 0 {
		t.Errorf("of %d documents %v have no servers, other servers and the entry: want all kinds", rounds, found)
	}
}

// meaning returns what a client reads.
func meaning(t *testing.T, text string) (v map[string]any) {
	t.Helper()
	standard, err := hujson.Standardize([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	decoder := json.NewDecoder(strings.NewReader(string(standard)))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return v
}

// holds reports whether a text has all the bytes of another in their order.
func holds(text, all string) bool {
	for i := range len(all) {
		_, rest, ok := strings.Cut(text, all[i:i+1])
		if !ok {
			return false
		}
		text = rest
	}
	return true
}
