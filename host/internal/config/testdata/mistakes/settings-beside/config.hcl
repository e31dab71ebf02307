workspace = "."

plugin "files" {
  tier         = "readonly"
  idle_timeout = "soon"
  colour       = "red"

  config {
    max_raed = "1MiB"
  }

  tool "read_file" {
    timeout = "fast"
  }
}

# What cannot be started cannot be asked what its settings are.
plugin "unpinned" {
  sha256 = "abc"
  tier   = "read_only"

  config {
    max_raed = "1MiB"
  }
}
