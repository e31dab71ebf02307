policy {
  actions_per_hour = "many"
  commands {
    allow = [7]
  }
  paths {
    workspace_only = true
  }
  rule "no-secrets" {
    tools   = ["write_file"]
    verdict = "ask"
  }
  rule "one-file" {
    tools   = ["read_file"]
    verdict = "ask"
  }
}
policy {
  paths {
    workspace_only = "yes"
  }
  urls {}
  commands {}
  rule "Names\u202e" {
    tools   = ["Write_*", "write file", "write_\u0007*", "*-*"]
    verdict = "deny"
    reason  = "no\u001b[2J"
    test "a\nb" {
      args   = ["x"]
      expect = "deny"
    }
    test "fine" {
      args   = null
      expect = "deny"
    }
    test "fine" {
      args   = { path = local.x }
      expect = "denied"
    }
  }
}
