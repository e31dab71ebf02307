package main

import "strings"

const (
	terms   = "# Terms\n\nGoods can be returned within 30 days at the shop's cost.\n"
	address = "http://127.0.0.1:18473"
	perLand = `awk -F, 'NR>1 {sum[$3]+=$4} END {for (c in sum) print c, sum[c]}' data/orders.csv`
	errors3 = `grep ERROR logs/server.log | cut -d' ' -f3 | sort | uniq -c`
)

// readings are tasks that read: files, documents, data, a server.
var readings = []task{
	{
		name: "find where a rule is and what tests it",
		repo: shop,
		toolhost: []step{
			{"search_content", args{"pattern": "discount"}},
			{"read_files", args{"paths": []string{"shop/prices.py", "tests/test_prices.py"}}},
		},
		claude: []step{
			bash("grep -rni --exclude-dir=.git --exclude-dir=node_modules discount ."),
			read("shop/prices.py"),
			read("tests/test_prices.py"),
		},
		check: func(r *repo, said string) {
			r.want(strings.Contains(said, "(100_00, 10)") && strings.Contains(said, "self.assertEqual(discount(20_00), 40)"), "both were shown")
		},
	},
	{
		name: "summarize a PDF in a file",
		repo: shop,
		toolhost: []step{
			{"read_file", args{"path": "docs/terms.pdf"}},
			{"write_file", args{"path": "docs/terms.md", "content": terms}},
		},
		claude: []step{
			read("docs/terms.pdf"),
			{"Write", args{"file_path": inRepo("docs/terms.md"), "content": terms}},
		},
		check: func(r *repo, _ string) { r.want(r.read("docs/terms.md") == terms, "the summary is written") },
	},
	{
		name:     "count the errors in a log of 20,000 lines by kind",
		repo:     shop,
		prepare:  func(r *repo) { r.write("logs/server.log", serverLog()) },
		toolhost: []step{shell(errors3)},
		claude:   []step{bash(errors3)},
		check: func(r *repo, said string) {
			r.want(strings.Contains(said, "20 payment:"), "20 errors of payment are counted")
		},
	},
	{
		name:     "sum up a table of 2,000 orders by country",
		repo:     shop,
		toolhost: []step{shell(perLand)},
		claude:   []step{bash(perLand)},
		check: func(r *repo, said string) {
			sum := r.run("awk", "-F,", `$3 == "FR" {sum+=$4} END {print sum}`, "data/orders.csv")
			r.want(strings.Contains(said, "FR "+sum), "the sum of FR is right")
		},
	},
	{
		name: "run a server, read it, and stop it",
		repo: shop,
		toolhost: []step{
			{"shell_background", args{"command": "python3 -m shop.server 18473"}},
			shell("curl -sS --retry 20 --retry-connrefused " + address + "/orders"),
			{"process_kill", args{"job": found{"", `job_[0-9a-z]+`}}},
		},
		claude: []step{
			{"Bash", args{"command": "python3 -m shop.server 18473", "run_in_background": true}},
			bash("curl -sS --retry 20 --retry-connrefused " + address + "/orders"),
			{"TaskStop", args{"task_id": found{"", `with ID: (\w+)`}}},
		},
		check: func(r *repo, said string) {
			r.want(strings.Contains(said, `"open": 1`), "the orders were read")
		},
	},
}
