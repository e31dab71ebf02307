package main

import "strings"

// conflict makes a branch "feature" that conflicts with main in two files.
func conflict(r *repo) {
	r.run("git", "switch", "-q", "-c", "feature")
	r.replace("README.md", "Keeps accounts in cents.", "Keeps accounts in cents, with limits.")
	r.replace("money/money.go", "// Share returns a percentage of an amount, rounded to the nearest cent.", "// Share returns a percentage of an amount, rounded half up.")
	r.write("docs/limits.md", "# Limits\n")
	r.commit("Document limits")
	r.run("git", "switch", "-q", "main")
	r.replace("README.md", "Keeps accounts in cents.", "Keeps accounts in cents, and reports.")
	r.replace("money/money.go", "// Share returns a percentage of an amount, rounded to the nearest cent.", "// Share returns a percentage of an amount, to the nearest cent.")
	r.commit("Shorten")
}

const (
	readmeSides = "<<<<<<< HEAD\nKeeps accounts in cents, and reports. `go test ./...` tests it.\n=======\nKeeps accounts in cents, with limits. `go test ./...` tests it.\n>>>>>>> feature\n"
	readmeBoth  = "Keeps accounts in cents, with limits and reports. `go test ./...` tests it.\n"
	moneySides  = "<<<<<<< HEAD\n// Share returns a percentage of an amount, to the nearest cent.\n=======\n// Share returns a percentage of an amount, rounded half up.\n>>>>>>> feature\n"
	moneyBoth   = "// Share returns a percentage of an amount, rounded half up.\n"
)

// histories are tasks with git.
var histories = []task{
	{
		name:    "merge a branch with conflicts in two files",
		repo:    ledger,
		prepare: conflict,
		toolhost: []step{
			{"git_merge", args{"rev": "feature"}},
			{"git_diff", args{}},
			{"edit_file", args{"path": "README.md", "edits": []args{{"old": readmeSides, "new": readmeBoth}, {"path": "money/money.go", "old": moneySides, "new": moneyBoth}}}},
			shell("go test ./... && git commit -qa --no-edit"),
		},
		claude: []step{
			bash("git merge feature"),
			read("README.md"),
			read("money/money.go"),
			edit("README.md", readmeSides, readmeBoth),
			edit("money/money.go", moneySides, moneyBoth),
			bash("go test ./... && git commit -qa --no-edit"),
		},
		check: func(r *repo, _ string) {
			r.clean()
			r.want(strings.Contains(r.read("README.md"), readmeBoth) && !strings.Contains(r.read("money/money.go"), "<<<<"), "the conflicts are resolved")
			r.run("git", "rev-parse", "--verify", "HEAD^2")
		},
	},
	{
		name: "undo a mistake: restore three files and keep a fourth",
		repo: ledger,
		prepare: func(r *repo) {
			for _, name := range []string{"taxes", "weekly", "audit"} {
				r.write("report/"+name+".go", "package report\n")
			}
			r.replace("README.md", "# ledger", "# Ledger")
		},
		toolhost: []step{
			{"git_diff", args{"stat": true}},
			{"git_restore", args{"files": []string{"report/taxes.go", "report/weekly.go", "report/audit.go"}}},
		},
		claude: []step{
			bash("git diff --stat"),
			bash("git restore report/taxes.go report/weekly.go report/audit.go"),
		},
		check: func(r *repo, _ string) {
			r.want(r.run("git", "diff", "--name-only") == "README.md", "only README.md has changed")
		},
	},
	{
		name: "revert a commit",
		repo: ledger,
		prepare: func(r *repo) {
			r.replace("money/money.go", "+ 50) / 100", "+ 49) / 100")
			r.commit("money: round down")
			r.write("NOTES", "later\n")
			r.commit("Add notes")
		},
		toolhost: []step{
			shell("git log --oneline -5"),
			shell("git revert --no-edit HEAD~1 && go test ./..."),
		},
		claude: []step{
			bash("git log --oneline -5"),
			bash("git revert --no-edit HEAD~1 && go test ./..."),
		},
		check: func(r *repo, _ string) {
			r.clean()
			r.want(strings.Contains(r.read("money/money.go"), "+ 50) / 100"), "the change is undone")
		},
	},
	{
		name: "bring a fix to the release branch",
		repo: ledger,
		prepare: func(r *repo) {
			r.run("git", "branch", "release-1.4", "v1.4.2")
			r.write("NOTES", "new\n")
			r.commit("Add notes")
			r.replace("money/money.go", "c = -c\n", "c = -c // cents count downward, too\n")
			r.commit("money: say why cents are negated")
		},
		toolhost: []step{
			shell("git log --oneline release-1.4..main"),
			shell("git switch -q release-1.4 && git cherry-pick main && go test ./... && git switch -q main"),
		},
		claude: []step{
			bash("git log --oneline release-1.4..main"),
			bash("git switch -q release-1.4 && git cherry-pick main && go test ./... && git switch -q main"),
		},
		check: func(r *repo, _ string) {
			r.clean()
			r.want(r.run("git", "diff", "--name-only", "release-1.4", "main") == "NOTES", "the branch has the fix only")
		},
	},
	{
		name: "put work aside, fix another branch, go on",
		repo: ledger,
		prepare: func(r *repo) {
			r.run("git", "branch", "hotfix")
			r.replace("README.md", "# ledger", "# Ledger")
		},
		toolhost: []step{
			shell("git stash && git switch -q hotfix && cat VERSION"),
			shell("echo 1.4.3 > VERSION && git commit -qam 'Raise the version' && git switch -q main && git stash pop"),
		},
		claude: []step{
			bash("git stash && git switch -q hotfix && cat VERSION"),
			bash("echo 1.4.3 > VERSION && git commit -qam 'Raise the version' && git switch -q main && git stash pop"),
		},
		check: func(r *repo, _ string) {
			r.want(r.run("git", "show", "hotfix:VERSION") == "1.4.3" && r.run("git", "diff", "--name-only") == "README.md", "the branch is fixed and the work is back")
		},
	},
	{
		name: "say who changed a line, and what else",
		repo: ledger,
		prepare: func(r *repo) {
			r.replace("account/account.go", "func (a *Account) Post", "// It is not safe for concurrent use.\nfunc (a *Account) Post")
			r.write("NOTES", "concurrency\n")
			r.commit("account: say what is not safe")
			r.write("NOTES", "later\n")
			r.commit("Add notes")
		},
		toolhost: []step{
			shell("git log -p -S 'safe for concurrent use' -- account ; git blame -s -L '/^func (a .Account) Post/,+3' account/account.go"),
		},
		claude: []step{
			bash("git log -p -S 'safe for concurrent use' -- account ; git blame -s -L '/^func (a .Account) Post/,+3' account/account.go"),
		},
		check: func(r *repo, said string) {
			r.want(strings.Contains(said, "account: say what is not safe"), "the commit is named")
		},
	},
}
