workspace  = "."
plugin_dri = "plugins"

server {
  listen = "127.0.0.1:7780"
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
