workspace = "ws"
state_dir = "/var/tmp/toolhost-test-state/builds"
policy {
  commands {}
}
plugin "nothing" {
  tier = "privileged"
  approval { builds = "allow" }
}
plugin "network" {
  tier = "privileged"
  approval { builds = "allow" }
  sandbox {
    filesystem { exec = ["system"] }
    network { mode = "host" }
  }
}
plugin "weak" {
  tier = "privileged"
  approval { builds = "allow" }
  sandbox {
    isolation = "isolated"
    filesystem { exec = ["system"] }
  }
}
plugin "lenient" {
  tier = "privileged"
  approval { builds = "allow" }
  sandbox {
    on_missing = "warn"
    filesystem { exec = ["system"] }
  }
}
plugin "word" {
  tier = "privileged"
  approval { builds = "confirm" }
}
