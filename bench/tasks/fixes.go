package main

import "strings"

const (
	oldBetween = "e.At.Before(to)"
	badBetween = "!e.At.After(to)"
	oldBest    = "if amount >= least:"
	badBest    = "if amount > least:"
	oldCount   = "count: known.count + item.count"
	badCount   = "count: item.count"
)

// fixes are tasks that make failing tests pass.
var fixes = []task{
	{
		name:    "fix a failing Go test",
		repo:    ledger,
		prepare: func(r *repo) { r.replace("account/account.go", oldBetween, badBetween); r.commit("account: simplify") },
		toolhost: []step{
			shell("go test ./..."),
			{"read_file", args{"path": "account/account.go"}},
			{"edit_file", args{"path": "account/account.go", "old": badBetween, "new": oldBetween}},
			shell("go test ./..."),
		},
		claude: []step{
			bash("go test ./..."),
			read("account/account.go"),
			edit("account/account.go", badBetween, oldBetween),
			bash("go test ./..."),
		},
		check: func(r *repo, _ string) { r.run("go", "test", "./account") },
	},
	{
		name:    "fix a failing Python test",
		repo:    shop,
		prepare: func(r *repo) { r.replace("shop/prices.py", oldBest, badBest); r.commit("prices: simplify") },
		toolhost: []step{
			shell("python3 -m unittest"),
			{"read_file", args{"path": "shop/prices.py"}},
			{"edit_file", args{"path": "shop/prices.py", "old": badBest, "new": oldBest}},
			shell("python3 -m unittest"),
		},
		claude: []step{
			bash("python3 -m unittest"),
			read("shop/prices.py"),
			edit("shop/prices.py", badBest, oldBest),
			bash("python3 -m unittest"),
		},
		check: func(r *repo, _ string) { r.run("python3", "-m", "unittest") },
	},
	{
		name:       "fix a failing TypeScript test",
		repo:       shop,
		typescript: true,
		prepare:    func(r *repo) { r.replace("web/cart.ts", oldCount, badCount); r.commit("web: simplify") },
		toolhost: []step{
			shell("npm test"),
			{"read_file", args{"path": "web/cart.ts"}},
			{"edit_file", args{"path": "web/cart.ts", "old": badCount, "new": oldCount}},
			shell("npm test"),
		},
		claude: []step{
			bash("npm test"),
			read("web/cart.ts"),
			edit("web/cart.ts", badCount, oldCount),
			bash("npm test"),
		},
		check: func(r *repo, _ string) { r.run("npm", "test") },
	},
	{
		name: "find the commit that broke a test, with git bisect",
		repo: ledger,
		prepare: func(r *repo) {
			for _, n := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
				r.write("NOTES", "change "+n+"\n")
				if n == "5" {
					r.replace("account/account.go", oldBetween, badBetween)
				}
				r.commit("account: change " + n)
			}
		},
		toolhost: []step{
			shell("git bisect start HEAD v1.4.2 && git bisect run go test ./account; git bisect reset"),
			{"git_show", args{"rev": found{"", "([0-9a-f]{40}) is the first bad commit"}}},
		},
		claude: []step{
			bash("git bisect start HEAD v1.4.2 && git bisect run go test ./account; git bisect reset"),
			{"Bash", args{"command": found{"git show ", "([0-9a-f]{40}) is the first bad commit"}}},
		},
		check: func(r *repo, said string) {
			r.want(strings.Contains(said, "account: change 5") && strings.Contains(said, badBetween), "the commit was shown")
			r.want(r.run("git", "branch", "--show-current") == "main", "main is checked out")
		},
	},
}
