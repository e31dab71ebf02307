package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// usualCommands are commands that agents run often.
var usualCommands = []struct {
	line    string
	unasked bool
}{
	{"go test ./...", false},
	{"cd cobra && go test ./... 2>&1 | tail -20", false},
	{"npm test", false},
	{"pytest -q", false},
	{"make test", false},
	{"git log --oneline -5", true},
	{"git diff HEAD~1", true},
	{"ls -la && pwd", true},
	{"grep -rn foo . | head", true},
	{"find . -name '*.go' | xargs wc -l", true},
	{"sed -n '1,20p' cobra/args.go", true},
	{"cat cobra/go.mod | grep module", true},
	{"rg -n foo", true},
	{"python3 - <<'EOF'", false},
	{`python3 -c "print(1)"`, false},
	{"mkdir -p build && cp a b", false},
	{"rm -rf build", false},
	{`git add -A && git commit -m "x"`, false},
	{"echo hi > out.txt", false},
	{"for f in *.go; do wc -l $f; done", true},
	{"diff a b", true},
	{"tree", true},
	{"jq . x.json", true},
	{"curl -s http://localhost:8080", false},
	{"go build ./... && go vet ./...", false},
	{"tail -f log", true},
	{"which go", true},
	{"env", true},
	{"head -c 100 f | xxd", true},
	{"git show HEAD:cobra/args.go", true},
	{"git status --porcelain", true},
	{"git branch -a", true},
	{"ls *.go", true},
	{"wc -l $(git ls-files)", true},
}

// TestBuilds runs builds without a question, in the default configuration with one line more,
// and has one of them try what the sandbox must prevent.
func TestBuilds(t *testing.T) {
	t.Parallel()
	h := serveShippedWith(t, func(text string) string {
		return strings.Replace(text, `approval { privileged = "confirm" }`, "approval {\n    privileged = \"confirm\"\n    builds     = \"allow\"\n  }", 1)
	})
	setup := exec.CommandContext(t.Context(), "git", "init", "-q")
	setup.Dir = filepath.Join(h.dir, "ws")
	if out, err := setup.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h.write(t, ".envrc", "")
	h.write(t, "Makefile", `all:
	@echo built > out.txt
	@! echo x 2>/dev/null > .git/hooks/pre-commit
	@! echo x 2>/dev/null > .envrc
	@! echo x 2>/dev/null > /etc/profile
	@ls /sys/class/net 2>/dev/null | grep -v lo || echo no network
`)
	client := connectAs(t, toolhost(t.Context(), h.config, "mcp"), "2025-11-25", "test", nil)
	if text := client.shown(t, "shell_exec", map[string]any{"command": "make 2>&1 | tail -5"}); text != "no network\n" || h.file("out.txt") != "built\n" {
		t.Errorf("make: %q, with %q", text, h.file("out.txt"))
	}
	for _, line := range []string{"X=1 make", "make all > log.txt", "./make", "make; rm Makefile"} {
		if out := h.ok(t, "explain", "shell_exec", "command="+line); strings.HasPrefix(out, "allow: ") {
			t.Errorf("%s: %s", line, out)
		}
	}
}

// TestUsualCommands checks which commands of agents run unasked with the default
// configuration, and that the host agrees with itself while they run.
func TestUsualCommands(t *testing.T) {
	t.Parallel()
	h := serveShippedWith(t, func(text string) string { return text })
	if err := os.Mkdir(filepath.Join(h.dir, "ws", "cobra"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"main.go": "package main // foo\n", "a": "1\n", "b": "2\n", "f": "foo\n", "log": "foo\n", "x.json": "{}\n",
		"cobra/args.go": "package cobra\n", "cobra/go.mod": "module cobra\n",
	} {
		h.write(t, name, text)
	}
	setup := exec.CommandContext(t.Context(), "bash", "-ec", `export HOME=$PWD GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q; git add .; git commit -qm one; git commit -q --allow-empty -m two`)
	setup.Dir = filepath.Join(h.dir, "ws")
	if out, err := setup.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	client := connectAs(t, toolhost(t.Context(), h.config, "mcp"), "2025-11-25", "test", nil)
	for _, c := range usualCommands {
		if !c.unasked {
			if out := h.ok(t, "explain", "shell_exec", "command="+c.line); !strings.HasPrefix(out, "ask: ") && !strings.HasPrefix(out, "confirm: ") {
				t.Errorf("%s: %s", c.line, out)
			}
			continue
		}
		args := map[string]any{"command": c.line}
		if strings.HasPrefix(c.line, "tail -f") {
			args["timeout"] = 1
		}
		if text := client.shown(t, "shell_exec", args); strings.Contains(text, "approv") {
			t.Errorf("%s: %s", c.line, text)
		}
	}
}
