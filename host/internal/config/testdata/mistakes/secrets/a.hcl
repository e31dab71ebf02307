workspace = "."
secret "brave" {
  value = "written-out"
}
secret "brave" {
  value = "again"
}
secret "kagi" {}
secret "not a name" {
  value = ["a list"]
}
plugin "fs" {
  tier    = "read_only"
  secrets = ["brave", "brave", "barve", "written-out", 7]
}
plugin "web" {
  tier    = "read_only"
  secrets = "brave"
}
