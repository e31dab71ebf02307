workspace  = "."
state_dir  = "/var/tmp/toolhost-test-state/sandbox"
plugin_dir = "/opt/toolhost-test-plugins"
locals {
  word = env("API_KEY")
}
sandbox "words" {
  isolation  = "strickt"
  require    = ["landlok", "seccomp", "seccomp", 7, local.word]
  on_missing = "ignore"
  run_as     = "nobody-of-that-name"
  limits {
    processes = -1
    tmp_size  = "unlimited"
  }
  filesystem {
    workspace = "readonly"
    exec      = ["sytem", "tmp", "bin", local.word, "tmp"]
    protect   = "all"
  }
  network {
    mode = "hots"
  }
}
sandbox "users" {
  run_as = 1000
}
sandbox "numbers" {
  run_as = "2000000001"
}
sandbox "group" {
  run_as = "1000:staff"
}
sandbox "last" {
  run_as = "4294967295:0"
}
sandbox "later" {
  network {
    mode  = "proxy"
    allow = ["api.example.com:443"]
  }
}
sandbox "paths" {
  filesystem {
    read  = ["", "~/x", "tmp", "/srv/a", "/srv/b/../a", "nul\u0000", "/", "/var/tmp", "/var/tmp/toolhost-test-state/sandbox"]
    write = ["~", "/", "/var/tmp/toolhost-test-state/sandbox/plugins/fs", "/proc/self", "/sys", "/dev/shm", local.word]
    exec  = ["/", "/var/tmp/toolhost-test-state"]
    protect = [
      "/etc", "", ".", "./", "..", "a/../b", "../work", "fine", "./fine/", "nul\u0000",
    ]
  }
}
sandbox "host" {
  filesystem {
    read  = ["/opt/toolhost-test-plugins", "/opt", "below"]
    write = ["/opt/toolhost-test-plugins", "/opt/toolhost-test-plugins/x", "/opt", "a.hcl", "/usr/lib/toolhost-test/web", "/usr/lib", "below"]
  }
}
sandbox "twice" {
  filesystem {
    workspace = "ro"
  }
  filesystem {
    read = 5
  }
  network {}
  network {
    mod = "none"
  }
}
plugin "web" {
  tier = "read_only"
  path = "/usr/lib/toolhost-test/web"
}
sandbox "network" {
  network {
    mode      = "proxy"
    allow     = ["api.example.com", "api.example.com", "http://example.com", "exa mple.com", "example.com:0", "169.254.0.0/16", "[::1", "127.1", 80]
    deny      = "example.com"
    ask       = "yes"
    max_bytes = "10B"
    inject "*" {
      secret = "github"
    }
    inject "api.example.com" {
      header = "no header"
      prefix = "a\nb"
      secret = "unknown"
    }
    inject "api.example.com" {}
  }
}
sandbox "noproxy" {
  isolation = "basic"
  network { mode = "proxy" }
}
plugin "unused" {
  tier = "read_only"
  sandbox {
    network { allow = ["example.com"] }
  }
}
