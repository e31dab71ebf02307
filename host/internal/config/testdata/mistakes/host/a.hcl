plugin_dir = 5
telemetry {
  ttl = "1h"
}
auth {
  local_usr = "ada"
  oidc {
    issuer = "https://example.com"
  }
}
sandbox "small" {
  network {
    allow = ["api.example.com:443"]
  }
  limits {
    memory        = 512
    open_files    = 0
    processes     = 1.5
    file_size     = "1MB"
    stack         = "0B"
    core          = "unlimited"
    cpu_time      = "1500ms"
    address_space = true
    tmp_size      = "64MiB"
    cpus          = 0.001
  }
  env {
    pass = ["LANG", "A=B", "PLUGIN_CLIENT_CERT", 7, "LANG"]
  }
}
sandbox "small" {}
sandbox "Big One" {}
plugin "fs" {
  enabled      = "perhaps"
  sha256       = "abc"
  claims       = "trusted"
  start        = "egaer"
  idle_timeout = "-10s"
  isolation_scope = "usre"
  rate         = "30/m"
  sandbox      = "small"
  sandbox {
    limits {
      memory = "100MiB"
    }
  }
  config {}
  config {}
}
