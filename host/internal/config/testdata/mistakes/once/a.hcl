workspace = "."
auth {
  local_user = "ada"
}
auth {
  local_usr = "bea"
}
policy {}
sandbox "small" {
  limits {}
  limits {
    memory = "1MiB"
  }
  env {}
}
plugin "fs" {
  tier = "read_only"
  sandbox {}
  sandbox {
    env {}
    env {
      pass = ["A B"]
    }
  }
  config {
    root {
      path = "a"
    }
    root {
      path = "b"
    }
  }
  config {
    depth = local.missing
  }
  approval {}
  approval {
    read_only = "alow"
  }
  approval = "ask"
  tool "read_file" {
    approval = "ask"
    approval {}
  }
}
