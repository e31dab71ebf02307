package main

import "strings"

const (
	maxFunc = `
// Max returns the larger one of two amounts.
func Max(a, b Amount) Amount {
	if a > b {
		return a
	}
	return b
}
`
	maxTest = `
func TestMax(t *testing.T) {
	if got := Max(1, 2); got != 2 {
		t.Errorf("Max(1, 2) = %d, want 2", got)
	}
}
`
	shareFunc = "// Share returns a percentage of an amount, rounded to the nearest cent.\nfunc Share(a Amount, percent int) Amount {\n\treturn (a*Amount(percent) + 50) / 100\n}\n"
	shareTest = "func TestShare(t *testing.T) {\n\tif got := Share(999, 50); got != 500 {\n\t\tt.Errorf(\"Share(999, 50) = %d, want 500\", got)\n\t}\n}\n"
	rename    = `grep -rlw 'money\.Format' . | xargs sed -i 's/\bmoney\.Format\b/money.Text/g' && sed -i 's/\bFormat\b/Text/' money/money.go && go test ./...`
	release   = `sed -i 's/2\.3\.1/2.4.0/' package.json pyproject.toml shop/__init__.py && git commit -qam "Release 2.4.0" && git tag v2.4.0`
	meanOld   = `mean = sum(int(r['cents']) for r in rows) / 100\nprint(mean)`
	meanNew   = `mean = sum(int(r['cents']) for r in rows) / len(rows) / 100\nprint(mean)`
)

// changes are tasks that change files.
var changes = []task{
	{
		name: "rename a function in 12 files",
		repo: ledger,
		toolhost: []step{
			{"search_content", args{"pattern": `\bFormat\b`}},
			shell(rename),
		},
		claude: []step{
			bash(`grep -rnw Format .`),
			bash(rename),
		},
		check: func(r *repo, _ string) {
			r.want(len(strings.Split(r.run("git", "diff", "--name-only"), "\n")) == 12, "12 files have changed")
			r.run("go", "vet", "./...")
		},
	},
	{
		name: "add a function with a test, and commit",
		repo: ledger,
		toolhost: []step{
			{"read_files", args{"paths": []string{"money/money.go", "money/money_test.go"}}},
			{"apply_patch", args{"patch": "*** Begin Patch\n*** Update File: money/money.go\n@@\n func Share(a Amount, percent int) Amount {\n \treturn (a*Amount(percent) + 50) / 100\n }\n" +
				added(maxFunc) + "*** Update File: money/money_test.go\n@@\n \tif got := Share(999, 50); got != 500 {\n \t\tt.Errorf(\"Share(999, 50) = %d, want 500\", got)\n \t}\n }\n" + added(maxTest) + "*** End Patch\n"}},
			shell(`go test ./... && git commit -qam "money: add Max"`),
		},
		claude: []step{
			read("money/money.go"),
			read("money/money_test.go"),
			edit("money/money.go", "percent) + 50) / 100\n}\n", "percent) + 50) / 100\n}\n"+maxFunc),
			edit("money/money_test.go", "want 500\", got)\n\t}\n}\n", "want 500\", got)\n\t}\n}\n"+maxTest),
			bash(`go test ./... && git commit -qam "money: add Max"`),
		},
		check: func(r *repo, _ string) {
			r.clean()
			r.run("go", "test", "-run", "TestMax", "./money")
			r.want(strings.HasSuffix(r.read("money/money.go"), maxFunc) && strings.HasSuffix(r.read("money/money_test.go"), maxTest), "both files have the text")
		},
	},
	{
		name: "move a function to a file of its own",
		repo: ledger,
		toolhost: []step{
			{"read_file", args{"path": "money/money.go"}},
			{"apply_patch", args{"patch": "*** Begin Patch\n*** Update File: money/money.go\n@@\n \treturn fmt.Sprintf(\"%s%d.%02d\", sign, a/100, a%100)\n }\n-\n" +
				removed(shareFunc) + "*** Add File: money/share.go\n+package money\n+\n" + added(shareFunc) + "*** End Patch\n"}},
			shell("go test ./..."),
		},
		claude: []step{
			read("money/money.go"),
			edit("money/money.go", "\n"+shareFunc, ""),
			{"Write", args{"file_path": inRepo("money/share.go"), "content": "package money\n\n" + shareFunc}},
			bash("go test ./..."),
		},
		check: func(r *repo, _ string) {
			r.want(r.read("money/share.go") == "package money\n\n"+shareFunc && !strings.Contains(r.read("money/money.go"), "Share"), "the function is in share.go")
			r.run("go", "test", "./money")
		},
	},
	{
		name: "raise a version in three files, commit, tag",
		repo: shop,
		toolhost: []step{
			{"search_content", args{"pattern": "2.3.1", "literal": true}},
			shell(release),
		},
		claude: []step{
			bash("grep -rnF --exclude-dir=.git --exclude-dir=node_modules 2.3.1 ."),
			bash(release),
		},
		check: func(r *repo, _ string) {
			r.clean()
			r.want(r.run("git", "grep", "-c", "2.4.0", "v2.4.0") != "", "the tag has the version")
		},
	},
	{
		name: "correct a cell of a notebook",
		repo: shop,
		toolhost: []step{
			{"read_file", args{"path": "notebooks/sales.ipynb"}},
			{"edit_file", args{"path": "notebooks/sales.ipynb", "old": "for r in rows) / 100", "new": "for r in rows) / len(rows) / 100"}},
		},
		claude: []step{
			read("notebooks/sales.ipynb"),
			{"NotebookEdit", args{"notebook_path": inRepo("notebooks/sales.ipynb"), "cell_id": "mean", "new_source": strings.ReplaceAll(meanNew, `\n`, "\n")}},
		},
		check: func(r *repo, _ string) {
			r.want(strings.Contains(r.read("notebooks/sales.ipynb"), "for r in rows) / len(rows) / 100"), "the cell is corrected")
		},
	},
}

// added and removed return lines of a patch.
func added(text string) string   { return marked("+", text) }
func removed(text string) string { return marked("-", text) }

func marked(mark, text string) string {
	return mark + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+mark) + "\n"
}
