package bridged

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/tool"
)

func TestBlock(t *testing.T) {
	got := Block(Server{
		Name: "github", Comment: "npm:server-github@1.2.3\nplugin \"evil\" {}", Command: []string{"/usr/bin/node", "/store/a.js", `a "b" ${c}`},
		Env: map[string]Value{
			"TOKEN": ParseValue("{{secret:github}}"), "AUTH": ParseValue(`Bearer {{secret:a}}-{{secret:b}} ${x}`), "PLAIN": ParseValue("1"), "odd-name x": Literal("{{secret:a}}"),
			"for": Env("HOME"), "DOLLAR": ParseValue("a${{secret:a}}$"),
		},
		Read: []string{"/store"}, Exec: []string{"system"}, Workspace: "ro", Network: "proxy", Hosts: []string{"api.github.com"}, Ask: true, Tier: tool.SideEffecting, SplitTiers: true,
	}, []SecretBlock{{"github", "secrets/github"}})
	want := `secret "github" {
  value = file("secrets/github")
}

# "npm:server-github@1.2.3\nplugin \"evil\" {}"
plugin "github" {
  path        = "mcp"
  tier        = "side_effecting"
  split_tiers = true

  config {
    command = ["/usr/bin/node", "/store/a.js", "a \"b\" $${c}"]
    env = {
      AUTH         = "Bearer ${secret("a")}-${secret("b")} $${x}"
      DOLLAR       = "a${"$"}${secret("a")}$"
      PLAIN        = "1"
      TOKEN        = secret("github")
      "for"        = env("HOME")
      "odd-name x" = "{{secret:a}}"
    }
  }
  sandbox {
    limits {
      memory     = "4GiB"
      open_files = 1024
    }
    filesystem {
      workspace = "ro"
      read      = ["/store"]
      exec      = ["system"]
    }
    network {
      mode  = "proxy"
      allow = ["api.github.com"]
      ask   = true
    }
  }
}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Block (-want +got):\n%s", diff)
	}
}

// TestRemove: what was added goes, with its comment, and all else stays as it was.
func TestRemove(t *testing.T) {
	block := Block(Server{Name: "a", Comment: "from somewhere", URL: "https://a.example/mcp", Workspace: "none", Network: "none", Tier: tool.ReadOnly}, nil)
	for _, old := range []string{
		"", "workspace = \".\"\n", "# a comment without an end", "workspace = \".\"\n\n\n# last\nplugin \"b\" {\n  tier = \"read_only\"   # odd   spaces\n}\n",
	} {
		added, err := Append(block)([]byte(old))
		if err != nil || !strings.HasSuffix(string(added), block) || !strings.HasPrefix(string(added), strings.TrimRight(old, "\n")) {
			t.Fatalf("Append to %q = %q, %v", old, added, err)
		}
		removed, err := Remove("a")(added)
		if want := strings.TrimRight(old, "\n"); err != nil || strings.TrimRight(string(removed), "\n") != want {
			t.Errorf("Remove from %q = %q, %v, want %q", added, removed, err, want)
		}
	}
	between, err := Remove("a")([]byte("# first\n\n" + block + "\nplugin \"b\" {}\n"))
	if err != nil || string(between) != "# first\n\nplugin \"b\" {}\n" {
		t.Errorf("Remove from the middle = %q, %v", between, err)
	}
	if _, err := Remove("c")([]byte(block)); !errors.Is(err, ErrNone) {
		t.Errorf("Remove of another = %v, want ErrNone", err)
	}
	if _, err := Remove("a")([]byte("plugin {")); err == nil {
		t.Error("Remove from a broken file has no error")
	}
}

// TestReplace changes one block, although another has the same package.
func TestReplace(t *testing.T) {
	block := func(name, dir, program, version string) string {
		return Block(Server{
			Name: name, Comment: "npm:p@" + version + ", added", Command: []string{"/usr/bin/node", dir + program, dir + "-not"}, Read: []string{dir},
			Workspace: "none", Network: "none", Tier: tool.ReadOnly,
		}, nil)
	}
	old := block("a", "/store/p-1", "/a.js", "1") + "\n" + block("b", "/store/p-1", "/a.js", "1")
	got, err := Replace("a", "/store/p-1", "/store/p-2", "/store/p-2/dist/b.js", strings.NewReplacer("npm:p@1", "npm:p@2"))([]byte(old))
	want := block("a", "/store/p-2", "/dist/b.js", "2") + "\n" + block("b", "/store/p-1", "/a.js", "1")
	want = strings.Replace(want, "/store/p-2-not", "/store/p-1-not", 1)
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("Replace = %v (-want +got):\n%s", err, diff)
	}
}
