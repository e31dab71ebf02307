workspace = "."
policy {
  mode             = "supervised"
  actions_per_hour = 100
  commands {
    allow = ["ls"]
  }
  rule "no-secrets" {
    tools   = ["read_*"]
    verdict = "deny"
  }
}
policy {
  mode = "autonomous"
  urls {
    allow_domains = ["example.org"]
  }
}
