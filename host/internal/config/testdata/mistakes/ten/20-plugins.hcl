locals {
  key = env("API_KEY")
}

sandbox "wide" {
  limits {
    memory = "1GiB"
  }
}

plugin "fs" {
  tier    = "read_only"
  sandbox = "wide"

  config {
    max_raed = "1MiB"
  }
}

plugin "web" {
  tier    = local.key
  sandbox = "widd"

  tool "web_fetch" {
    aliases = ["web_fetch"]
  }
}

plugin "git" {
  tier = "read_only"
}
