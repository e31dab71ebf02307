workspace  = "."
plugin_dir = "."

policy {
  paths {
    sensitive = ["defaults", "!**/test.pem", "**/*.tfvars"]
  }
}

plugin "fs" {
  tier = "read_only"
  sandbox {
    filesystem { protect = ["git", "editors", "agent", "./hook"] }
  }
}
