# The configuration that toolhost starts with when it is run here. Relative
# paths are relative to the directory of this file. `toolhost validate` checks
# it and reports every mistake with its line.

# The directory that the tools work in. They reach nothing outside of it.
workspace = "."

# Where the plugins named below are; `make build` puts them there.
plugin_dir = "bin/plugins"

# Where the host keeps what must outlive it: never inside the workspace. The
# default is $XDG_STATE_HOME/toolhost/... (usually below ~/.local/state), or
# /var/lib/toolhost/... for root.
# state_dir = "/var/lib/toolhost/mine"

# What each process of a plugin may use at most, by setrlimit(2). Plugins that
# name no other sandbox get this one. Every limit can be "unlimited", except
# core.
sandbox "default" {
  limits {
    memory        = "512MiB" # heap and private mappings; at least 192MiB
    open_files    = 256
    file_size     = "256MiB" # the largest file that can be written
    stack         = "8MiB"
    core          = "0B" # no core files, which would hold secrets
    processes     = "unlimited"
    cpu_time      = "unlimited" # over the whole life of the process
    address_space = "unlimited" # small values keep Go programs from starting
  }

  env {
    pass = ["TZ"] # variables of the host's environment that plugins get
  }
}

# One block for each plugin: a program of its own, started when the first of
# its tools is called.
plugin "fs" {
  path = "fs" # in plugin_dir; an absolute path names a program anywhere

  # The most that a tool of this plugin may be: "read_only", "side_effecting"
  # or "privileged". Tools above it are left out, and `toolhost plugins list`
  # says so.
  tier = "read_only"

  # Take the plugin's word for what each of its tools is. Without this, each
  # tool counts as the tier above unless a tool block says otherwise.
  claims = "trust"

  # The plugin's own settings; it says itself which there are.
  config {
    max_read = "1MiB" # how much of one file a call returns at most
  }

  # What you want to be different for a single tool:
  # tool "search_content" {
  #   timeout    = "30s"
  #   max_output = "16KiB"
  #   aliases    = ["grep"]
  # }
}
