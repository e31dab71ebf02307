package main

// applyCases are hostile repositories for the tools that apply commits.
func applyCases() []hostileCase {
	fires := func(id, setup string, args ...string) hostileCase {
		c := hostileCase{ID: id, Setup: setup, Args: args, Check: "apply"}
		c.Verified.PlainFired = true
		return c
	}
	refused := func(id, setup string, args ...string) hostileCase {
		return hostileCase{ID: id, Setup: setup, Args: args, Check: "refuse"}
	}
	planted := func(id, setup string, args ...string) hostileCase {
		c := fires(id, setup, args...)
		c.Check = "refuse"
		return c
	}
	// The branch side changes the file that main changes, and other adds one.
	const (
		side    = `git checkout -q a.txt; git checkout -qb side HEAD~1; echo side > a.txt; git commit -qam side; git checkout -q main; `
		other   = `git checkout -q a.txt; git checkout -qb other HEAD~1; echo c > c.txt; git add c.txt; git commit -qm other; git checkout -q main; `
		onSide  = `git checkout -q side; `
		onOther = `git checkout -q other; `
		three   = `git commit -qam three; `
		// The attributes do not count as a change.
		attributes = `printf '*.txt merge=x filter=x\n' > .git/info/attributes; `
		driver     = attributes + `git config merge.x.driver "$EVIL %A"; `
		gpg        = `git config commit.gpgSign true; git config gpg.program $EVIL; `
	)
	hook := func(name string) string { return `cp $EVIL .git/hooks/` + name }
	return []hostileCase{
		fires("merge-driver", side+driver, "merge", "side"),
		fires("merge-driver-cherry-pick", side+driver, "cherry-pick", "side"),
		fires("merge-driver-revert", three+driver, "revert", "--no-edit", "HEAD~1"),
		fires("merge-default", side+`git config merge.default x; git config merge.x.driver "$EVIL %A"`, "merge", "side"),
		fires("merge-smudge", other+attributes+`git config filter.x.smudge $EVIL`, "merge", "other"),
		fires("merge-renormalize", side+attributes+`git config merge.renormalize true; git config filter.x.clean $EVIL`, "merge", "side"),
		fires("cherry-pick-process", other+attributes+`git config filter.x.process $EVIL`, "cherry-pick", "other"),
		fires("merge-gpg", other+gpg, "merge", "--no-edit", "other"),
		fires("cherry-pick-gpg", other+gpg, "cherry-pick", "other"),
		fires("merge-editor", other+`git config core.editor $EVIL`, "merge", "--edit", "other"),
		fires("hook-pre-merge-commit", other+hook("pre-merge-commit"), "merge", "--no-edit", "other"),
		fires("hook-post-merge", other+hook("post-merge"), "merge", "--no-edit", "other"),
		fires("hook-prepare-commit-msg", other+hook("prepare-commit-msg"), "cherry-pick", "other"),
		fires("hook-post-commit-revert", three+hook("post-commit"), "revert", "--no-edit", "HEAD"),
		fires("hook-reference-transaction-merge", other+hook("reference-transaction"), "merge", "--no-edit", "other"),
		fires("external-diff-stash-show", `git stash -q; echo y > a.txt; git config diff.external $EVIL`, "stash", "show", "-p", "--ext-diff"),
		fires("tag-gpg", `git config tag.gpgSign true; git config gpg.program $EVIL`, "tag", "-m", "x", "v1"),
		fires("tag-editor", `git config core.editor $EVIL`, "tag", "-a", "v1"),
		fires("tag-force-sign", `git config tag.forceSignAnnotated true; git config gpg.program $EVIL`, "tag", "-m", "x", "v1"),
		fires("hook-reference-transaction-tag", hook("reference-transaction"), "tag", "v1"),
		fires("rebase-driver", side+onSide+driver, "rebase", "main"),
		fires("rebase-smudge", other+onOther+attributes+`git config filter.x.smudge $EVIL`, "rebase", "main"),
		fires("rebase-instructions", other+onOther+`git config rebase.instructionFormat "%s%nexec $EVIL"`, "rebase", "main"),
		fires("rebase-gpg", other+onOther+gpg, "rebase", "main"),
		fires("hook-pre-rebase", other+onOther+hook("pre-rebase"), "rebase", "main"),
		fires("hook-post-rewrite", other+onOther+hook("post-rewrite"), "rebase", "main"),
		planted("rebase-todo", side+onSide+`git rebase -q main; git checkout -q HEAD -- a.txt; echo "exec $EVIL" > .git/rebase-merge/git-rebase-todo`, "rebase", "--continue"),
		refused("rebase-option", "git checkout -q a.txt", "rebase", "--exec=evil"),
		refused("tag-option", "true", "tag", "--file=.git/config"),
		refused("merge-strategy", "git checkout -q a.txt", "merge", "--strategy=evil"),
		refused("cherry-pick-option", "git checkout -q a.txt", "cherry-pick", "--gpg-sign=evil"),
		refused("revert-option", "git checkout -q a.txt", "revert", "--edit"),
	}
}
