workspace = "."
locals {
  hosts = ["a"]
}
policy {
  rule "fine" {
    tools   = ["shell_*"]
    when    = anytrue([for c in commands : contains(local.hosts, c.name)])
    verdict = "deny"
    reason  = "closed"
  }
  rule "fine" {
    tools   = ["x"]
    verdict = "ask"
  }
  rule "" {
  }
  rule "patterns" {
    tools   = ["[", "", 7, "a", "a"]
    verdict = "perhaps"
    when    = argz.x == 1
    locked  = "no"
  }
  rule "names" {
    tools   = []
    verdict = "ask"
    when    = tool.nam == "x" && caller.usr == "y" && env("HOME") == "z" && startwith(args.path, "a")
  }
  rule "never" {
    tools   = ["y"]
    verdict = "ask"
    when    = length(local.hosts) > 1
  }
  rule "no condition" {
    tools   = ["y"]
    verdict = "ask"
    when    = local.hosts
  }
  rule "names of rows" {
    tools   = ["y"]
    verdict = "deny"
    when    = anytrue([for c in commands : c.nmae == "x"]) || anytrue([for p in paths : p.rell == "x"])
  }
  rule "patterns and folders" {
    tools   = ["y"]
    verdict = "deny"
    when    = regex("(", args.x) || glob("[", args.x) || anytrue([for p in paths : under(p.path, "docs")])
  }
  rule "arguments of functions" {
    tools   = ["y"]
    verdict = "deny"
    when    = regex(args.x) || startswith(args.x, "a", "b") || caller.roles[0] > "a"
  }
  rule "a number" {
    tools   = ["y"]
    verdict = "deny"
    when    = length(paths)
  }
  rule "locked allow" {
    tools   = ["z"]
    verdict = "allow"
    locked  = true
  }
  rule "all writes" {
    tools   = ["write_*"]
    verdict = "confirm"
  }
  rule "one write" {
    tools   = ["write_file", "write_b*"]
    verdict = "ask"
    when    = args.force
  }
  rule "locked write" {
    tools   = ["write_file"]
    verdict = "ask"
    locked  = true
  }
  rule "more" {
    tools   = ["*_file"]
    verdict = "ask"
  }
  rule "wrong" "labels" {
    tools = ["x"]
  }
}
