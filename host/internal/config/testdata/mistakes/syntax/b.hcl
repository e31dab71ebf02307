plugin "git" {
  tier = "read_only
}
