workspace = "missing"
plugin_dir = "x"
plugin "web" {
  path = ""
  tier = "read_only"
  tool "web_fetch" {
    tier       = "privileged"
    timeout    = 10
    max_output = "-1KiB"
    aliases    = "fetch"
    enabled    = 1
    cache_ttl  = "2h"
  }
}
plugin {
  tier = "read_only"
}
