workspace = "."
locals {
  key = env("API_KEY")
  pin = env("PIN")
}
plugin "fs" {
  tier = "read_only"
  config {
    max_raed = "1MiB"
    max_read = "1 MB"
    patience = 10
    mode     = "txet"
    hidden   = "perhaps"
    depth    = 1.5
    ratio    = "much"
    skip     = ["a", true, ["b"]]
    labels = {
      a = "b"
      c = 5
    }
    cache {
      size = "1MiB"
      sise = "1MiB"
    }
    root {
      path = "a"
    }
    root {
      writable = 1
    }
  }
}
plugin "other" {
  tier = "read_only"
  config {
    max_read = "1KiB"
    patience = "1us"
    mode     = local.key
    depth    = 65
    hidden {
    }
    cache {
      dir = "a"
    }
    cache {
      dir = "b"
    }
    skip = null
    root = [{ path = "a", writeable = true }, { writable = true }]
    labels "x" {
      a = local.pin
    }
  }
}
plugin "third" {
  tier = "read_only"
  config {
    max_read = "1000B"
    depth    = local.key
    cache    = "dir"
    patience = local.key
    root     = {}
    labels   = ["a"]
    skip     = ["a"]
    skip {
    }
    mode = env("NOT_SET")
  }
}
