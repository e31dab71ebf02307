// Package hostilegit makes repositories for tests that have git run a program when
// it only looks: at the status, at a difference, at the history.
package hostilegit

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Case is one hostile repository.
type Case struct {
	// Name is the name of the case, a word.
	Name string
	// setup is run by bash in the repository; $EVIL is the program.
	setup string
	// Dir is the directory of the repository for git, "" for the repository itself.
	Dir string
	// Quiet says that plain git does not start the program: another version may.
	Quiet bool
	// Held says that the environment of package gitenv alone keeps the program from
	// starting.
	Held bool
}

const (
	text      = `printf '*.txt diff=x filter=x\n' > .gitattributes; `
	submodule = `git init -q sm && (cd sm && printf "*.txt diff=x filter=x\n" > .gitattributes && echo 1 > s.txt && git add . && git -c user.name=a -c user.email=a@b commit -qm i) && ` +
		`git -c advice.addEmbeddedRepo=false add sm; git commit -qm sm -- sm; echo 2 > sm/s.txt; `
	signed = `printf 'tree %s\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n -----END PGP SIGNATURE-----\n\nsigned\n' ` +
		`$(git rev-parse HEAD^{tree}) > .git/c; git update-ref HEAD $(git hash-object -w -t commit .git/c); `
	stale = `touch -d 2001-01-01 b.bin; `
)

// Cases returns all of them.
func Cases() []Case {
	return []Case{
		// Settings that the environment overrides.
		{Name: "fsmonitor", setup: `git config core.fsmonitor $EVIL`, Held: true},
		{Name: "fsmonitor-v1", setup: `git config core.fsmonitorHookVersion 1; git config core.fsmonitor $EVIL`},
		{Name: "fsmonitor-case", setup: `printf '[CORE]\n\tFSMonitor = %s\n' $EVIL >> .git/config`, Held: true},
		{Name: "fsmonitor-line", setup: `printf '[core] fsmonitor = "%s"\n' $EVIL >> .git/config`, Held: true},
		{Name: "fsmonitor-continued", setup: `printf '[core]\n\tfsmonitor = \\\n%s\n' $EVIL >> .git/config`, Held: true},
		{Name: "hook", setup: stale + `mkdir -p .git/hooks; cp $EVIL .git/hooks/post-index-change`, Held: true},
		{Name: "hooks-path", setup: stale + `mkdir h; cp $EVIL h/post-index-change; git config core.hooksPath h`, Held: true},
		{Name: "signature", setup: signed + `git config log.showSignature true; git config gpg.program $EVIL`, Held: true},
		{Name: "signature-format", setup: signed + `git config format.pretty %G?; git config gpg.program $EVIL`, Held: true},
		{Name: "signature-openpgp", setup: signed + `git config format.pretty %G?; git config gpg.openpgp.program $EVIL`, Held: true},
		{Name: "pager", setup: `git config core.pager $EVIL`, Quiet: true, Held: true},
		{Name: "submodule-fsmonitor", setup: submodule + `git -C sm config core.fsmonitor $EVIL`},
		{Name: "inner-fsmonitor", setup: `git init -q in; git -C in -c user.name=a -c user.email=a@b commit -q --allow-empty -m i; git -C in config core.fsmonitor $EVIL`, Dir: "in", Held: true},
		{Name: "worktree-fsmonitor", setup: `git config extensions.worktreeConfig true; git config --worktree core.fsmonitor $EVIL`, Held: true},
		// Names that the repository itself defines.
		{Name: "clean", setup: text + `git config filter.x.clean $EVIL`},
		{Name: "clean-case", setup: text + `printf '[FILTER "x"] CLEAN=%s\n' $EVIL >> .git/config`},
		{Name: "clean-comment", setup: text + `printf '; [\n[filter "x"] # ]\n\tclean = %s ; x\n' $EVIL >> .git/config`},
		{Name: "clean-crlf", setup: text + `printf '[filter "x"]\r\n\tclean = %s\r\n' $EVIL >> .git/config`},
		{Name: "clean-escaped", setup: `printf '*.txt filter=x"y\n' > .gitattributes; printf '[filter "x\\"y"]\nclean = %s\n' $EVIL >> .git/config`},
		{Name: "clean-dotted", setup: text + `printf '[filter.x]\nclean = %s\n' $EVIL >> .git/config`},
		{Name: "clean-info", setup: `printf '*.txt filter=x\n' > .git/info/attributes; git config filter.x.clean $EVIL`},
		{Name: "clean-attributes-file", setup: `printf '*.txt filter=x\n' > .git/x; git config core.attributesFile .git/x; git config filter.x.clean $EVIL`},
		{Name: "process", setup: text + `git config filter.x.process $EVIL`},
		{Name: "textconv", setup: text + `git config diff.x.textconv $EVIL`},
		{Name: "driver", setup: text + `git config diff.x.command $EVIL`},
		{Name: "external", setup: `git config diff.external $EVIL`},
		{Name: "include", setup: text + `printf "[filter \"x\"]\nclean=$EVIL\n" > .git/extra; git config include.path extra`},
		{Name: "include-branch", setup: text + `printf "[filter \"x\"]\nclean=$EVIL\n" > .git/extra; git config includeIf.onbranch:main.path extra`},
		{Name: "worktree-config", setup: text + `git config extensions.worktreeConfig true; git config --worktree filter.x.clean $EVIL`},
		{Name: "submodule-clean", setup: submodule + `git -C sm config filter.x.clean $EVIL`},
		{Name: "submodule-v4", setup: submodule + `git update-index --index-version 4; git -C sm config filter.x.clean $EVIL`},
		{Name: "inside-submodule", setup: submodule + `git -C sm config filter.x.clean $EVIL`, Dir: "sm"},
		{Name: "split-index", setup: submodule + `git update-index --split-index; git -C sm config filter.x.clean $EVIL`},
		{Name: "below", setup: text + `git config filter.x.clean $EVIL; mkdir d`, Dir: "d"},
		{Name: "inner", setup: `mkdir in; cp a.txt in; cd in; git init -q; ` + text + `git add a.txt; echo 2 > a.txt; git config filter.x.clean $EVIL`, Dir: "in"},
		{Name: "worktree", setup: `git checkout -q a.txt; git worktree add -q wt; cd wt; ` + text + `echo 9 > a.txt; git config filter.x.clean $EVIL`, Dir: "wt"},
		{Name: "separate", setup: text + `git init -q --separate-git-dir elsewhere; git config filter.x.clean $EVIL`},
		{Name: "linked", setup: text + `git config filter.x.clean $EVIL; mv .git kept; ln -s kept .git`},
		{Name: "common", setup: text + `git config filter.x.clean $EVIL; cp -r .git other; git config --unset filter.x.clean; echo ../other > .git/commondir`},
		{Name: "bare", setup: `git init -q --bare b; git -C b config core.bare false; git -C b config core.worktree ..; git -C b config core.fsmonitor $EVIL`, Dir: "b", Held: true},
		{Name: "bare-clean", setup: text + `mv .git b; git --git-dir b config core.worktree ..; git --git-dir b config filter.x.clean $EVIL`, Dir: "b", Held: true},
		{Name: "promisor", setup: `git remote add origin ssh://localhost/x; git config remote.origin.promisor true; git config extensions.partialClone origin; git config core.sshCommand $EVIL; rm -f .git/objects/$(git rev-parse HEAD~1:a.txt | sed 's:^..:&/:')`},
	}
}

const (
	start = `git init -q -b main . && mkdir .git/info && printf '[user]\n\temail = a@b\n\tname = a\n' >> .git/config && ` +
		`echo a > a.txt && echo b > b.bin && git add -A && git commit -qm one && echo a2 > a.txt && git commit -qam two && echo a3 > a.txt`
	// The program ends at once, so that git does not wait for its answer.
	evil = `echo fired >> "$MARK"` + "\n"
)

// Make creates the directory and the repository in it, and returns the file whose existence
// proves that the program was started. Both are below the parent.
func (c Case) Make(t *testing.T, dir string) (mark string) {
	t.Helper()
	mark = filepath.Join(filepath.Dir(dir), c.Name+".fired")
	program := filepath.Join(filepath.Dir(dir), c.Name+".evil")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nMARK='"+mark+"'\n"+evil), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	setup := exec.CommandContext(t.Context(), "bash", "-e")
	setup.Stdin = strings.NewReader(start + "\n" + c.setup)
	setup.Dir, setup.Env = dir, append(Environment(filepath.Dir(dir)), append(Quick(), "EVIL="+program)...)
	if out, err := setup.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", c.Name, err, out)
	}
	if err := os.Remove(mark); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return mark
}

// Quick is the environment in which git creates repositories with few processes and files: git
// packs nothing and installs no sample hooks.
func Quick() []string {
	return []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=maintenance.auto", "GIT_CONFIG_VALUE_0=false", "GIT_TEMPLATE_DIR="}
}

// Environment is the environment of a user without any configuration.
func Environment(home string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "LC_ALL=C"}
}

// Commands are read-only commands that start the program of a repository.
func Commands(dir string) []string {
	return []string{"git -C " + dir + " status", "git -C " + dir + " diff", "git -C " + dir + " log -p"}
}
