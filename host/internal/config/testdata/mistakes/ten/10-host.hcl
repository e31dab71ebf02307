workspace  = "."
plugin_dri = "plugins"

telemetry {
  prometheus = true
}

sandbox "default" {
  limits {
    memory   = "64MiB"
    cpu_time = "ten seconds"
  }
}

plugin "git" {
  tier = "privilegd"
}
