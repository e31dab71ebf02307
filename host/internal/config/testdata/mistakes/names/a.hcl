workspace = "."
plugin "File System" {
  tier = "read_only"
  tool "read-file" {
    aliases = ["cat", "Cat", "cat"]
  }
  tool "list" {
    aliases = ["list", "cat", "stat"]
  }
  tool "stat" {}
  tool "stat" {}
}
plugin "toolhost" {
  tier = "read_only"
}
