package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/tool"
)

// caseTable is the table of hostile repositories and arguments.
type caseTable struct {
	Init, Evil string
	Cases      []hostileCase
}

type hostileCase struct {
	ID, Setup, Check string
	Args             []string `json:"git_args"`
	Verified         struct {
		PlainFired bool `json:"plain_fired"`
	}
}

func readCases(t *testing.T) caseTable {
	t.Helper()
	dir := os.Getenv("TOOLHOST_CASES")
	if dir == "" {
		dir = filepath.Join("testdata", "cases")
	}
	data, err := os.ReadFile(filepath.Join(dir, "git.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table caseTable
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Cases) == 0 || table.Evil == "" {
		t.Fatal("the table is empty")
	}
	return table
}

// TestCasesGit runs the tools on hostile repositories, with both layers that keep them from
// running programs. On a quarter of them a day, on all with make soak: plain git, where the
// programs must start, and the tools with each layer alone and with none.
func TestCasesGit(t *testing.T) {
	table := readCases(t)
	day := soak.Seed(t)
	var bare, ran atomic.Int32
	t.Cleanup(func() {
		t.Logf("ran %d cases; without a layer, the tools start a program in %d", ran.Load(), bare.Load())
		if int(ran.Load()) == len(table.Cases)+len(moreCases())+len(applyCases()) && int(bare.Load()) < soak.Rounds(2, 15) && !t.Failed() {
			t.Errorf("without a layer, the tools start a program in %d cases: the test proves little", bare.Load())
		}
	})
	for i, c := range slices.Concat(table.Cases, moreCases(), applyCases()) {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			ran.Add(1)
			w, mark := hostile(t, table, c, layers{})
			made := filepath.Join(w.scratch, "made")
			copyTree(t, w.dir, made)
			if soak.Today(day, i, 4) {
				out := plainGit(t, w, mark, c.Args)
				if got := fired(t, w, mark); got != c.Verified.PlainFired {
					t.Errorf("plain git: a program was started: %t, want %t\n%s", got, c.Verified.PlainFired, out)
				}
			}
			for j, l := range []struct {
				name   string
				layers layers
			}{{"both", layers{}}, {"overrides", layers{noRules: true}}, {"rules", layers{noOverrides: true}}, {"none", layers{true, true}}} {
				if j > 0 && !soak.Today(day, i+j, 4) {
					continue
				}
				w.again(made, mark, l.layers)
				results := w.callFor(c.Args)
				switch {
				case l.name == "none":
					if fired(t, w, mark) {
						bare.Add(1)
					}
				case fired(t, w, mark):
					t.Errorf("with %s, a program of the repository was started: %+v", l.name, results)
				case c.Check == "refuse" && !slices.ContainsFunc(results, func(r tool.Result) bool { return r.Error != nil }):
					t.Errorf("with %s: %+v, want it refused", l.name, results)
				case c.Check == "apply" && j == 0 && results[0].Error != nil && !strings.Contains(results[0].Error.Message, "has conflicts in"):
					t.Errorf("with %s: %v, want the commit applied", l.name, results[0].Error)
				}
			}
		})
	}
}

// hostile makes the repository of a case, and returns the file whose existence proves that its
// program was started.
func hostile(t *testing.T, table caseTable, c hostileCase, l layers) (w *workspace, mark string) {
	t.Helper()
	w = newWorkspace(t, started{layers: l, settings: map[string]any{"protocols": protocols()}})
	mark = filepath.Join(w.scratch, "mark") // writable regardless of the layers
	evil := filepath.Join(w.dir, "evil")
	if err := os.WriteFile(evil, []byte(strings.ReplaceAll(table.Evil, "$MARK", mark)), 0o755); err != nil {
		t.Fatal(err)
	}
	w.copyTemplate(filepath.Join(w.dir, "r"), table.Init)
	setup := exec.Command("bash", "-c", c.Setup)
	setup.Dir, setup.Env = filepath.Join(w.dir, "r"), append(environment(w.scratch), "EVIL="+evil)
	if out, err := setup.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Remove(mark); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return w, mark
}

// again restores the original workspace, with a plugin that has the layers.
func (w *workspace) again(made, mark string, l layers) {
	w.Helper()
	if err := errors.Join(os.RemoveAll(w.dir), os.RemoveAll(mark)); err != nil {
		w.Fatal(err)
	}
	copyTree(w, made, w.dir)
	w.start(started{layers: l, settings: map[string]any{"protocols": protocols()}})
}

// plainGit runs git as a user would, until it ends or has started the program of the
// repository, which it may wait for.
func plainGit(t *testing.T, w *workspace, mark string, args []string) string {
	t.Helper()
	var out bytes.Buffer
	plain := exec.Command("git", args...)
	plain.Dir, plain.Env = filepath.Join(w.dir, "r"), append(environment(w.scratch), "EVIL="+filepath.Join(w.dir, "evil"))
	plain.Stdout, plain.Stderr, plain.WaitDelay = &out, &out, time.Second
	plain.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := plain.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = plain.Wait() // many fail
	}()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-ended:
			return out.String()
		case <-look.C:
			if _, err := os.Stat(mark); err == nil {
				_ = syscall.Kill(-plain.Process.Pid, syscall.SIGKILL) // it may have ended
				<-ended
				return out.String()
			}
		}
	}
}

// fired reports whether a program of the repository was started.
func fired(t *testing.T, w *workspace, mark string) bool {
	t.Helper()
	for _, path := range []string{mark, filepath.Join(w.dir, "r", "OWNED"), filepath.Join(w.dir, "OWNED")} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// callFor makes the calls that correspond to a command line of git.
func (w *workspace) callFor(command []string) []tool.Result {
	w.Helper()
	call := func(name string, in args) tool.Result {
		if in["files"] == nil {
			in["path"] = "r"
		}
		return w.call(name, in)
	}
	line := strings.Join(command, " ")
	switch verb := command[0]; {
	case line == "diff -O/etc/hostname":
		return []tool.Result{call("git_diff", args{"base": "-O/etc/hostname"}), call("git_diff", args{"base": "HEAD", "head": "-O/etc/hostname"})}
	case verb == "diff":
		return []tool.Result{call("git_diff", args{}), call("git_diff", args{"base": "HEAD"}), call("git_diff", args{"base": "HEAD~1", "head": "HEAD", "stat": true})}
	case verb == "commit":
		return []tool.Result{call("git_commit", args{"message": "x", "files": []string{"r"}})}
	case verb == "show" && len(command) > 1:
		return []tool.Result{call("git_show", args{"rev": command[1]})}
	case verb == "log":
		results := []tool.Result{call("git_log", args{}), call("git_show", args{})}
		if rev := command[len(command)-1]; rev != "-p" {
			results = append(results, call("git_log", args{"rev": rev}), call("git_show", args{"rev": rev}))
		}
		return results
	case verb == "add":
		return []tool.Result{call("git_add", args{"files": []string{"r/" + command[1]}})}
	case verb == "status":
		return []tool.Result{call("git_status", args{}), call("git_status", args{"untracked": "all"})}
	case verb == "fetch":
		return []tool.Result{call("git_fetch", args{"remote": command[1]}), call("git_pull", args{"remote": command[1], "branch": "main"}), call("git_push", args{"remote": command[1]})}
	case verb == "clone":
		return []tool.Result{w.call("git_clone", args{"url": strings.Replace(command[1], "./", "r/", 1), "path": "copy"})}
	case verb == "branch":
		return []tool.Result{call("git_branch", args{"name": command[1], "create": true}), call("git_branch", args{})}
	case verb == "switch":
		return []tool.Result{call("git_switch", args{"branch": command[len(command)-1], "create": len(command) == 3})}
	case verb == "merge":
		return []tool.Result{call("git_merge", args{"rev": command[len(command)-1], "ff": "never"}), call("git_merge", args{"abort": true})}
	case verb == "cherry-pick" || verb == "revert":
		name := map[string]string{"cherry-pick": "git_cherry_pick", "revert": "git_revert"}[verb]
		return []tool.Result{call(name, args{"revs": command[len(command)-1:]}), call(name, args{"abort": true})}
	case line == "rebase --continue":
		return []tool.Result{call("git_rebase", args{"continue": true}), call("git_rebase", args{"abort": true})}
	case verb == "rebase":
		return []tool.Result{call("git_rebase", args{"upstream": command[1]}), call("git_rebase", args{"abort": true})}
	case verb == "tag":
		name := command[len(command)-1]
		return []tool.Result{call("git_tag", args{"action": "create", "name": name, "message": "x"}), call("git_tag", args{"action": "create", "name": name + "2"}), call("git_tag", args{})}
	case verb == "stash" && len(command) > 1:
		return []tool.Result{call("git_stash", args{"action": "push"}), call("git_stash", args{"action": "show"})}
	case verb == "stash":
		return []tool.Result{call("git_stash", args{"action": "push", "untracked": true}), call("git_stash", args{"action": "pop"})}
	case verb == "restore":
		return []tool.Result{call("git_restore", args{"files": []string{"r/" + command[1]}})}
	case verb == "reset":
		return []tool.Result{call("git_reset", args{"rev": command[2], "mode": "hard"})}
	case verb == "blame":
		return []tool.Result{w.call("git_blame", args{"path": "r/" + command[1]})}
	case verb == "st":
		return []tool.Result{w.call("st", args{}), w.call("git_st", args{})}
	}
	w.Fatalf("no tool is like git %q", command)
	return nil
}

// moreCases are further ones, of the same kind.
func moreCases() []hostileCase {
	fires := func(id, setup string, args ...string) hostileCase {
		c := hostileCase{ID: id, Setup: setup, Args: args}
		c.Verified.PlainFired = true
		return c
	}
	quiet := func(id, setup string, args ...string) hostileCase {
		return hostileCase{ID: id, Setup: setup, Args: args}
	}
	const smudge = `printf '*.txt filter=x\n' > .gitattributes; git config filter.x.smudge $EVIL; `
	return []hostileCase{
		fires("smudge-restore", smudge, "restore", "a.txt"),
		fires("smudge-reset", smudge, "reset", "--hard", "HEAD~1"),
		fires("smudge-switch", `git branch old HEAD~1; git checkout -q a.txt; `+smudge, "switch", "old"),
		fires("required-filter", `printf '*.txt filter=x\n' > .gitattributes; git config filter.x.required true; git config filter.x.clean $EVIL`, "add", "a.txt"),
		fires("filter-name", `printf '*.txt filter=a.b=c\n' > .gitattributes; git config 'filter.a.b=c.clean' $EVIL`, "diff"),
		fires("filter-shell", `printf '*.txt filter=x\n' > .gitattributes; git config filter.x.clean "sh $EVIL"`, "diff"),
		fires("external-diff", `git config diff.external $EVIL`, "diff"),
		fires("fsmonitor", `git config core.fsmonitor $EVIL`, "status"),
		fires("textconv-blame", `printf '*.txt diff=x\n' > .gitattributes; git config diff.x.textconv $EVIL`, "blame", "a.txt"),
		fires("attributes-file", `printf '*.txt filter=x\n' > .git/info/attributes; git config filter.x.clean $EVIL`, "diff"),
		fires("attributes-config", `printf '*.txt filter=x\n' > .git/x; git config core.attributesFile .git/x; git config filter.x.clean $EVIL`, "diff"),
		fires("worktree-config", `printf '*.txt filter=x\n' > .gitattributes; git config core.repositoryFormatVersion 1; git config extensions.worktreeConfig true; git config --worktree filter.x.clean $EVIL`, "diff"),
		fires("include-branch", `printf '*.txt filter=x\n' > .gitattributes; printf "[filter \"x\"]\nclean=$EVIL\n" > .git/extra; git config includeIf.onbranch:main.path extra`, "diff"),
		fires("hook-post-checkout", `git checkout -q a.txt; cp $EVIL .git/hooks/post-checkout`, "switch", "-c", "other"),
		fires("hooks-path", `git checkout -q a.txt; mkdir h; cp $EVIL h/post-checkout; git config core.hooksPath h`, "switch", "-c", "other"),
		fires("stash-filter", `printf '*.txt filter=x\n' > .gitattributes; git config filter.x.clean $EVIL`, "stash"),
		fires("show-signature", `git config log.showSignature true; git config gpg.program $EVIL; printf 'tree %s\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n -----END PGP SIGNATURE-----\n\nsigned\n' $(git rev-parse HEAD^{tree}) > .git/c; git update-ref HEAD $(git hash-object -w -t commit .git/c)`, "log"),
		fires("ssh-command", `git remote add origin ssh://localhost/x; git config core.sshCommand $EVIL`, "fetch", "origin"),
		fires("git-proxy", `git remote add origin git://localhost/x; git config core.gitProxy $EVIL`, "fetch", "origin"),
		fires("alternate-refs", `git init -q --bare ../up.git; git remote add origin $PWD/../up.git; git clone -q --bare . ../alt.git; echo $PWD/../alt.git/objects > .git/objects/info/alternates; git push -q origin main; git commit -qam three; git config core.alternateRefsCommand $EVIL`, "fetch", "origin"),
		fires("instead-of", `git remote add origin good:x; git config url.ssh://localhost/.insteadOf good:; git config core.sshCommand $EVIL`, "fetch", "origin"),
		fires("rev-option", "true", "log", "--output=OWNED"),
		fires("show-option", "true", "show", "--output=OWNED"),
		quiet("clone", `for name in post-checkout reference-transaction post-index-change; do cp $EVIL .git/hooks/$name; done; printf '*.txt filter=x\n' > .gitattributes; git add .gitattributes; git commit -qm three; git config filter.x.smudge $EVIL; git config core.fsmonitor $EVIL`, "clone", "./.git", "../copy"),
		{ID: "clone-option", Setup: "true", Args: []string{"clone", "--upload-pack=evil", "../copy"}, Check: "refuse"},
		quiet("promisor", `git remote add origin "ext::$EVIL"; git config remote.origin.promisor true; git config core.repositoryFormatVersion 1; git config extensions.partialClone origin; rm -f .git/objects/$(git rev-parse HEAD~1:a.txt | sed 's:^..:&/:')`, "diff"),
	}
}

// A filter that was not there when the configuration was read is stopped by the rules:
// the repository changes during the call. The control has no rules.
func TestConfigurationChangesDuringCall(t *testing.T) {
	table := readCases(t)
	for _, l := range []layers{{}, {noRules: true}} {
		w, mark := hostile(t, table, hostileCase{Setup: `printf '*.txt filter=x\n' > .gitattributes`}, l)
		// The cache holds the old configuration.
		g := &git{layers: l, configs: newConfigCache(), scratch: w.scratch}
		r := openForTest(t, w, g)
		w.git("r", "config", "filter.x.clean", filepath.Join(w.dir, "evil"))
		var out bytes.Buffer
		if _, err := r.run(t.Context(), command{args: []string{"diff"}, output: &out}); err != nil {
			t.Fatal(err)
		}
		if got := fired(t, w, mark); got != l.noRules {
			t.Errorf("with %+v, the filter was started: %t", l, got)
		}
	}
}

func openForTest(t *testing.T, w *workspace, g *git) *repository {
	t.Helper()
	s := &access{git: g, budget: 64 << 10}
	s.settings.complete()
	r, err := s.openAt([]folder{{w.dir, w.dir}}, filepath.Join(w.dir, "r"), filepath.Join(w.dir, "r", ".git"))
	if err == nil {
		err = r.readConfig(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}
