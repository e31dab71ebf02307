package approval_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// shown is a record to show.
func shown() approval.Record {
	return approval.Record{
		ID: "ap_1", User: "ada", Client: "claude", Session: "s1", Plugin: "p", Tool: "put", Tier: tool.Privileged,
		Verdict: policy.Confirm, Rule: `tool "put"`, Where: "config.hcl:12", State: approval.Open,
		Expires:   time.Date(2026, 8, 1, 12, 10, 0, 0, time.UTC),
		Arguments: json.RawMessage(`{"empty":{},"lines":"one\ntwo\n","list":[1,[]],"path":"a.txt"}`),
	}
}

func TestShow(t *testing.T) {
	r := shown()
	r.Description, r.Context = "Writes a file\u202e\nTool: look", "needed for\nthe build"
	r.Preview = &tool.Preview{
		Summary: "Changes a.txt",
		Content: []tool.Content{
			tool.Text("--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-old\n+new\ttab\n"),
			{Kind: tool.KindImage, MediaType: "image/png", Data: []byte("1234")},
		},
	}
	view := approval.Show(r)
	want := strings.TrimPrefix(`
Approval: ap_1
State:    open, until 2026-08-01T12:10:00Z
Tool:     put
Plugin:   p
Tier:     privileged
User:     ada
Client:   claude
Session:  s1
Rule:     confirm, by tool "put" at config.hcl:12
Note:     the policy requires a person to look at each such call
The plugin says of the tool:
  | Writes a file\u202e\nTool: look
The agent says (the host has not checked this):
  > needed for
  > the build
Arguments:
  | {
  |   "empty": {},
  |   "lines": "one\n
  |       two\n",
  |   "list": [
  |     1,
  |     []
  |   ],
  |   "path": "a.txt"
  | }
The plugin says what would happen:
  | Changes a.txt
  | --- a.txt
  | +++ a.txt
  | @@ -1 +1 @@
  | -old
  | +new	tab
  ~ 4 bytes of part 2 of the preview, image image/png, are not shown; all 4 have
  ~ ...  sha256:03ac674216f3e15c761ee1a5e255f067953623c8b388b4459e13f978d7c846f4
`, "\n")
	if diff := cmp.Diff(want, view.Text(80)); diff != "" {
		t.Errorf("Text (-want +got):\n%s", diff)
	}
	if view.Complete {
		t.Error("Complete = true without the image")
	}
	kinds := make(map[approval.LineKind]int)
	for _, line := range view.Lines {
		kinds[line.Kind]++
	}
	if kinds[approval.Added] != 2 || kinds[approval.Removed] != 2 {
		t.Errorf("the kinds of lines are %v, want two added and two removed", kinds)
	}
	r.Preview.Content = r.Preview.Content[:1]
	if view := approval.Show(r); !view.Complete {
		t.Error("Complete = false for text that is all shown")
	}
	r.Arguments = nil
	if view := approval.Show(r); view.Complete {
		t.Error("Complete = true without the arguments")
	}
}

// misleading are accents that cover the character before them.
var misleading = regexp.MustCompile(`[^\pL\pM]\pM|\pM{5}`)

// Hostile text, and what the approver sees of it. The control is a display without escapes: it
// must do harm, otherwise the text is not an attack.
func TestHostileText(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"a path that is turned around", "a\u202etxt.exe", `a\u202etxt.exe`},
		{"isolates", "a\u2066b\u2069", `a\u2066b\u2069`},
		{"a line that is erased", "rm -rf /\x1b[2K\rls", `rm -rf /\x1b[2K\rls`},
		{"C1", "a\u009b2Kb", `a\u009b2Kb`},
		{"a backspace", "b.txt\b\b", `b.txt\x08\x08`},
		{"nothing that is something", "a\u200b\u2060\ufeff.txt", `a\u200b\u2060\ufeff.txt`},
		{"tags", "a\U000e0041", `a\U000e0041`},
		{"selectors of variants", "a\ufe0f\U000e0100", `a\ufe0f\U000e0100`},
		{"fillers", "a\u3164\uffa0\u115f", `a\u3164\uffa0\u115f`},
		{"blanks", "a\u00a0b\u2003c\u3000d\u2800e", `a\u00a0b\u2003c\u3000d\u2800e`},
		{"a soft hyphen", "a\u00adb", `a\u00adb`},
		{"separators of lines", "a\u2028b\u2029c\u0085d", `a\u2028b\u2029c\u0085d`},
		{"an accent on a slash", "a/\u0338b", `a/\u0338b`},
		{"a heap of accents", "a\u0300\u0300\u0300\u0300\u0300\u0300", "a\u0300\u0300\u0300\u0300" + `\u0300\u0300`},
		{"a frame around letters", "a\u20dd", `a\u20dd`},
		{"letters of nobody", "a\ue000\U0010fffd\u0378", `a\ue000\U0010fffd\u0378`},
		{"ordinary text", "naïve e\u0301 日本語 ภาษาไทย שלום 😀", "naïve e\u0301 日本語 ภาษาไทย שלום 😀"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			harms := strings.ContainsFunc(tt.text, hostile) || misleading.MatchString(tt.text)
			if attack := tt.text != tt.want; harms != attack {
				t.Errorf("control: that the text does harm as it is = %t, want %t", harms, attack)
			}
			r := shown()
			text, err := json.Marshal(map[string]string{"path": tt.text})
			if err != nil {
				t.Fatal(err)
			}
			// As canonical JSON has it: only controls are escaped.
			canonical := string(text)
			for _, char := range "\u2028\u2029" {
				canonical = strings.ReplaceAll(canonical, fmt.Sprintf(`\u%04x`, char), string(char))
			}
			r.Arguments = json.RawMessage(canonical)
			r.Context, r.Client = tt.text, tt.text
			r.Preview = &tool.Preview{Summary: tt.text}
			want := map[approval.LineKind]string{approval.Said: tt.want, approval.Shown: tt.want, approval.Fact: tt.want}
			for _, line := range approval.Show(r).Lines {
				if line.Kind == approval.Fact && line.Label != "Client" {
					continue
				}
				if text, ok := want[line.Kind]; ok {
					if line.Text != text {
						t.Errorf("%s: %s, want %s", line.Kind, line.Text, text)
					}
					delete(want, line.Kind)
				}
			}
			if len(want) > 0 {
				t.Errorf("there is no line for %v", want)
			}
			checkVisible(t, approval.Show(r))
		})
	}
}

// hostile reports whether a character may never reach an approver's screen.
func hostile(char rune) bool {
	return char != '\t' && unicode.In(char, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs,
		unicode.Me, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) || char != ' ' && unicode.Is(unicode.Zs, char)
}

// checkVisible makes sure that nothing in a view hides or acts.
func checkVisible(t *testing.T, view approval.View) {
	t.Helper()
	for _, line := range view.Lines {
		if i := strings.IndexFunc(line.Text, hostile); i >= 0 || !utf8.ValidString(line.Text) {
			t.Errorf("%s line %q holds what cannot be seen, at %d", line.Kind, line.Text, i)
		}
	}
}

// Only the host draws the frame around given text. Without its marks, a line from the agent
// would read like the host's.
func TestNobodyFakesTheFrame(t *testing.T) {
	fake := "x\nTool:     read\n  ! nothing to see\nArguments:\n  | {}"
	wrapped := "x" + strings.Repeat(" ", 200) + "Tool:     read"
	r := shown()
	args, err := json.Marshal(map[string]string{"a\nTool:     read": fake, "b": wrapped})
	if err != nil {
		t.Fatal(err)
	}
	r.Arguments, r.Context, r.Client, r.Session = args, fake+"\n"+wrapped, fake, wrapped
	r.Preview = &tool.Preview{Summary: fake, Content: []tool.Content{tool.Text(fake), tool.Text(wrapped), {Kind: tool.KindResourceLink, Name: fake, URI: wrapped}}}
	r.State, r.DecidedBy, r.Message = approval.Rejected, fake, fake
	for _, columns := range []int{0, 1, 30, 80, 200} {
		text := approval.Show(r).Text(columns)
		for line := range strings.Lines(text) {
			switch {
			case strings.HasPrefix(line, "Tool:") && line != "Tool:     put\n",
				strings.HasPrefix(line, "  ! "),
				strings.HasPrefix(line, "Arguments:") && strings.Count(text, "\nArguments:") != 1:
				t.Errorf("at %d columns somebody says %q", columns, line)
			}
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); columns >= 30 && n > columns {
				t.Errorf("at %d columns a line has %d", columns, n)
			}
		}
	}
	if !strings.Contains("\n"+r.Context, "\nTool:     read") {
		t.Error("the attack is none: without the frame it does not begin a line")
	}
}

func TestSuspiciousWords(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"plain text, naïve, 日本語のtext, ภาษาไทยABC", ""},
		{"обычный текст", `can look like Latin ones: "обычный" is "\u043e`},
		{"Ελληνικό κείμενο", `can look like Latin ones: "Ελληνικό" is "\u0395`},
		{"\u2c9f\u2c9f", `can look like Latin ones: "ⲟⲟ" is "\u2c9f\u2c9f"`},
		{"5 kΩ", "mixes alphabets"},
		{"1²³ ½ № … – — ™ “quotes”", ""},
		{"/home/ada/p\u0430ssword", "mixes alphabets"},
		{"p\u0440od", "mixes alphabets"},
		{"g\u03bfogle", "mixes alphabets"},
		{"\u0441\u043e\u0440\u0443 the file", `can look like Latin ones: "сору" is "\u0441\u043e\u0440\u0443"`},
		{"\u039d\u039f", `can look like Latin ones: "ΝΟ" is "\u039d\u039f"`},
		{"ｒｍ -rf", `only look like those of "rm"`},
		{"\U0001d42b\U0001d426", `only look like those of "rm"`},
		{"a\u2215b", `only look like those of "a/b"`},
		{"rm \u2010rf", `only look like those of "-rf"`},
		{"1\u09ea", "mixes alphabets"},
		{"\u05e9\u05dc\u05d5\u05dd", "right to left"},
	} {
		r := shown()
		text, err := json.Marshal(map[string]any{"list": []string{tt.text}})
		if err != nil {
			t.Fatal(err)
		}
		for _, where := range []string{"arguments", "escaped arguments", "context", "preview"} {
			q := r
			switch where {
			case "arguments":
				q.Arguments = text
			case "escaped arguments":
				q.Arguments = json.RawMessage(strings.ReplaceAll(strconv.QuoteToASCII(tt.text), `\U0001d42b\U0001d426`, `\ud835\udc2b\ud835\udc26`))
			case "context":
				q.Context = tt.text
			case "preview":
				q.Preview = &tool.Preview{Content: []tool.Content{tool.Text("line\n" + tt.text)}}
			}
			var warnings []string
			for _, line := range approval.Show(q).Lines {
				if line.Kind == approval.Warning {
					warnings = append(warnings, line.Text)
				}
			}
			if all := strings.Join(warnings, "\n"); (all == "") != (tt.want == "") || !strings.Contains(all, tt.want) {
				t.Errorf("%s of %q: warnings %q, want %q", where, tt.text, all, tt.want)
			}
		}
	}
}

func TestWarningsAreFew(t *testing.T) {
	r := shown()
	for n := range 100 {
		r.Context += fmt.Sprintf("p\u0430th%d ", n)
	}
	warnings := 0
	for _, line := range approval.Show(r).Lines {
		if line.Kind == approval.Warning {
			warnings++
		}
	}
	if warnings != 9 {
		t.Errorf("%d warnings for a hundred words, want eight and one about the rest", warnings)
	}
}

var omission = regexp.MustCompile(`^(\d+) bytes of (.*) are not shown; all (\d+) have (sha256:[0-9a-f]{64})$`)

// Text that does not fit is counted and named by its digest, and "always" is not offered then.
func TestNothingIsCutSilently(t *testing.T) {
	long := strings.Repeat("a long line of text\n", 30_000) // 600 kB
	args, err := json.Marshal(map[string]string{"text": long})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		change func(*approval.Record)
		whole  []byte
	}{
		{"arguments", func(r *approval.Record) { r.Arguments = args }, args},
		{"nested arguments", func(r *approval.Record) {
			r.Arguments = []byte(strings.Repeat("[", 60) + strings.Repeat("[],", 100_000) + "0" + strings.Repeat("]", 60))
		}, []byte(strings.Repeat("[", 60) + strings.Repeat("[],", 100_000) + "0" + strings.Repeat("]", 60))},
		{"a preview", func(r *approval.Record) { r.Preview = &tool.Preview{Content: []tool.Content{tool.Text(long)}} }, []byte(long)},
		{"one line", func(r *approval.Record) {
			r.Preview = &tool.Preview{Summary: strings.Repeat("é", 200_000)}
		}, []byte(strings.Repeat("é", 200_000))},
		{"escapes", func(r *approval.Record) {
			r.Preview = &tool.Preview{Summary: strings.Repeat("\u202e", 60_000)}
		}, []byte(strings.Repeat("\u202e", 60_000))},
		{"empty lines", func(r *approval.Record) {
			r.Preview = &tool.Preview{Summary: strings.Repeat("\n", 100_000)}
		}, []byte(strings.Repeat("\n", 100_000))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := shown()
			tt.change(&r)
			view := approval.Show(r)
			last := view.Lines[len(view.Lines)-1]
			m := omission.FindStringSubmatch(last.Text)
			if view.Complete || last.Kind != approval.Omission || m == nil {
				t.Fatalf("Complete = %t, and the last line is %+v; want an omission", view.Complete, last)
			}
			sum := sha256.Sum256(tt.whole)
			if m[3] != strconv.Itoa(len(tt.whole)) || m[4] != "sha256:"+hex.EncodeToString(sum[:]) {
				t.Errorf("the omission is %q, want the size %d and the digest %x", last.Text, len(tt.whole), sum)
			}
			size := 0
			for _, line := range view.Lines {
				size += len(line.Text)
			}
			if size > 300<<10 {
				t.Errorf("%d bytes are shown, want at most 256 KiB and the frame", size)
			}
		})
	}
	service := open(t, t.TempDir(), approval.Options{})
	q := question(string(args))
	if record := service.ask(t, q); record.Standing {
		t.Error("Standing = true for a call that cannot be shown whole")
	}
}

// FuzzShow checks that no invisible character is shown, and that the shown part and the part
// reported missing add up to the whole.
func FuzzShow(f *testing.F) {
	for _, seed := range []string{"", "plain", "a\u202eb", "\x1b]0;x\a", "\xff\xfe", "a\n\n", "e\u0301\u0301", "\u0430\u0440"} {
		f.Add(seed)
	}
	f.Fuzz(checkShow)
}

func checkShow(t *testing.T, text string) {
	t.Helper()
	r := shown()
	r.Client, r.Context = text, strings.ReplaceAll(text, `\`, "/") // so that escapes are distinguishable from text
	r.Preview = &tool.Preview{Summary: r.Context}
	valid := strings.ToValidUTF8(text, "?")
	var args bytes.Buffer
	encoder := json.NewEncoder(&args)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(map[string]string{valid: valid}); err != nil {
		t.Fatal(err)
	}
	r.Arguments = args.Bytes()
	view := approval.Show(r)
	checkVisible(t, view)
	for line := range strings.Lines(view.Text(60)) {
		if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), hostile) {
			t.Errorf("the terminal gets %q", line)
		}
	}
	var said, arguments []string
	missing := make(map[string]int)
	for _, line := range view.Lines {
		switch line.Kind {
		case approval.Said:
			said = append(said, line.Text)
		case approval.Argument:
			arguments = append(arguments, strings.TrimLeft(line.Text, " "))
		case approval.Omission:
			m := omission.FindStringSubmatch(line.Text)
			if m == nil {
				t.Fatalf("the omission is %q", line.Text)
			}
			missing[m[2]], _ = strconv.Atoi(m[1])
		case approval.Fact, approval.Heading, approval.Warning, approval.Shown, approval.Added, approval.Removed:
		}
	}
	if view.Complete != (len(missing) == 0) {
		t.Errorf("Complete = %t, and %v is missing", view.Complete, missing)
	}
	got := unescape(t, strings.Join(said, "\n"))
	want := r.Context[:len(r.Context)-missing["what the agent says"]]
	if got != strings.TrimSuffix(want, "\n") { // the end of the last line begins no other
		t.Errorf("shown %q, want %q", got, want)
	}
	if len(missing) > 0 {
		return
	}
	// White space at the ends of lines apart, the JSON is all there.
	compact := func(text string) string { return strings.Join(strings.Fields(text), "") }
	if got, want := compact(unescapeJSON(t, strings.Join(arguments, ""))), compact(args.String()); got != want {
		t.Errorf("shown %s, want %s", got, want)
	}
}

var escape = regexp.MustCompile(`\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|r)`)

// unescape reverses the escaping of a text without backslashes.
func unescape(t *testing.T, text string) string {
	t.Helper()
	return escape.ReplaceAllStringFunc(text, func(e string) string {
		s, err := strconv.Unquote(`"` + e + `"`)
		if err != nil {
			t.Fatalf("the escape %s: %v", e, err)
		}
		return s
	})
}

// unescapeJSON is the inverse for JSON, whose own escapes stay.
func unescapeJSON(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		if rest[0] != '\\' {
			b.WriteByte(rest[0])
			continue
		}
		e := escape.FindString(rest)
		char := unescape(t, e)
		if !strings.HasPrefix(rest, e) || e == "" || e == `\r` || char < " " || char == "\u2028" || char == "\u2029" {
			b.WriteString(rest[:2]) // JSON's own
			i++
			continue
		}
		b.WriteString(char)
		i += len(e) - 1
	}
	return b.String()
}

// The host's own words are never broken, so that a user can copy a place. Given text breaks at
// the end of a row, whatever it contains.
func TestRowsOfTheHostBreakAtBlanks(t *testing.T) {
	r := shown()
	r.Verdict, r.Rule, r.Where = policy.Ask, `plugin "fs", approval of side_effecting calls`, "config.hcl:105"
	r.Client, r.Context = strings.Repeat("x", 75)+"  y", strings.Repeat("word ", 20)
	for columns, want := range map[int]string{
		80: `
Client:   xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
    ... xxxxx  y
Session:  s1
Rule:     ask, by plugin "fs", approval of side_effecting calls at
    ...  config.hcl:105
The agent says (the host has not checked this):
  > word word word word word word word word word word word word word word word w
  >\ord word word word word 
`,
		30: `
Session:  s1
Rule:     ask, by plugin "fs",
    ...  approval of
    ...  side_effecting calls
    ...  at config.hcl:105
The agent says (the host has
    ...  not checked this):
  > word word word word word w
`,
	} {
		if text := approval.Show(r).Text(columns); !strings.Contains(text, want) {
			t.Errorf("at %d columns Text lacks\n%s\nit is\n%s", columns, want, text)
		}
	}
}

func TestShowSpent(t *testing.T) {
	r := shown()
	r.State, r.DecidedBy, r.Via, r.Message, r.Decided = approval.Spent, "ada", "cli", "fine", r.Expires.Add(-time.Minute)
	text := approval.Show(r).Text(80)
	for _, want := range []string{
		"\nState:    spent\n", "\nDecision: approved by ada over cli at 2026-08-01T12:09:00Z\n", "\nMessage:  fine\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("Text lacks %q:\n%s", want, text)
		}
	}
}
