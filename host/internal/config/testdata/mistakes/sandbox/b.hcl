sandbox "off" {
  isolation = "off"
  require   = ["rlimits", "landlock", "netns"]
}
sandbox "basic" {
  isolation = "basic"
  require   = ["seccomp", "mounts"]
}
sandbox "net" {
  require = ["netns"]
  network {
    mode = "host"
  }
}
sandbox "blind" {
  filesystem {
    workspace = "none"
    exec      = ["system", "workspace"]
  }
}
sandbox "default" {
  require = ["netns", "landlock", "seccomp"]
  filesystem {
    exec = ["workspace"]
  }
}
plugin "a" {
  tier    = "read_only"
  sandbox = "off"
}
plugin "b" {
  tier = "read_only"
  sandbox {
    isolation = "off"
    filesystem {
      workspace = "none"
    }
    network {
      mode = "host"
    }
  }
}
plugin "c" {
  tier = "read_only"
  sandbox {
    limits {
      tmp_size = "1GiB"
    }
  }
}
