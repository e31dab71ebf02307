package config_test

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/config"
)

// TestAccept: a comment silences the warnings of its line or, if it stands alone, of the next.
func TestAccept(t *testing.T) {
	commands := func(lines string) string {
		return "workspace = \"ws\"\npolicy {\ncommands {\n" + lines + "\n}\n}\n"
	}
	for _, tt := range []struct {
		name, text string
		want       []string // beginnings of the warnings
	}{
		{"in the line", commands(`allow = ["sh"] # accept: allow`), nil},
		{"another comment", commands(`allow = ["sh"] // accept:allow`), nil},
		{"a block comment", commands(`allow = ["sh"] /* accept: allow */`), nil},
		{"above", commands("# accept: allow\n\n# further words\nallow = [\"sh\"]"), nil},
		{"above an element", commands("allow = [\n\"ls\",\n# accept: allow\n\"sh\",\n]"), nil},
		{"two words", commands("allow = [\"sh\"]\ndeny = [\"rm -rf\", \"x -y\"] # accept: allow, deny"), []string{
			"config.hcl:4: allow: ", `config.hcl:5: accept: there is no warning "allow"`,
		}},
		{"another line", commands("allow = [\"sh\"]\n# accept: allow\ndeny = [\"rm\"]"), []string{
			"config.hcl:4: allow: ", `config.hcl:5: accept: there is no warning "allow" about this line. Remove the word.`,
		}},
		{"misspelt", commands(`allow = ["sh"] # accept: alow`), []string{
			"config.hcl:4: allow: ", `config.hcl:4: accept: no warning has the word "alow". Did you mean "allow"?`,
		}},
		{"no word", commands(`deny = ["rm"] # accept:`), []string{`config.hcl:4: accept: no warning has the word "". There are allow, `}},
		{"in a text", "workspace = \"ws\"\nauth {\nlocal_user = \"x # accept: deny\"\n}\n", nil},
		{"a word of warnings that need the tools", "workspace = \"ws\" # accept: tier", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := loadAlone(t, tt.text)
			if err != nil {
				t.Fatal(err)
			}
			got := cfg.Unaccepted(nil, false)
			if len(got) != len(tt.want) {
				t.Fatalf("%d warnings, want %d:\n%s", len(got), len(tt.want), strings.Join(got, "\n"))
			}
			for i, want := range tt.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("warning %q, want %q", got[i], want)
				}
			}
		})
	}
}

// TestAcceptToolWarnings: a warning about tools is silenced like others, and a comment that
// silences none is told once the tools are known.
func TestAcceptToolWarnings(t *testing.T) {
	cfg, err := loadAlone(t, "workspace = \"ws\"\nplugin \"a\" {\ntier = \"read_only\" # accept: tier\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	about := config.Warning{Place: "config.hcl:3", Word: config.WarnTier, Text: "Tools are left out."}
	if got := cfg.Unaccepted([]config.Warning{about}, true); len(got) > 0 {
		t.Errorf("a silenced warning: %q", got)
	}
	if got := cfg.Unaccepted(nil, true); len(got) != 1 || !strings.Contains(got[0], `no warning "tier" about this line`) {
		t.Errorf("warnings %q, want that the word silences nothing", got)
	}
	about.Place = "config.hcl:2"
	const want = "config.hcl:2: Tools are left out. If you mean it, add the comment # accept: tier."
	if got := cfg.Unaccepted([]config.Warning{about}, false); len(got) != 1 || got[0] != want {
		t.Errorf("warnings %q, want %q", got, want)
	}
}
