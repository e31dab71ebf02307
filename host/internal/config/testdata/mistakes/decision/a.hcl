workspace = ""
server {
  listen = "0.0.0.0:7780"
  tls {}
}
auth {
  local_user = "ada\n"
  token "ci" {
    sha256 = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"
    user   = "ci"
    roles  = ["agent", "approver"]
  }
  token "ci" {
    sha256 = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"
    user   = ""
    roles  = ["agnet", 7, "boss"]
  }
  token "Bo B" {
    sha256   = "th_abcdefghijklmnopqrstuvwxyz"
    roles    = ["agent"]
    approves = ["ci"]
  }
  token "bea" {
    sha256   = "0A"
    user     = "bea"
    roles    = ["approver", "approver"]
    approves = ["bea", "", "ci", "ci"]
  }
  token "cy" {
    user     = "cy"
    roles    = []
    approves = "ci"
  }
  token "di" {
    sha256 = null
    user   = null
    roles  = null
  }
  token "eve" {
    sha256 = 5
    user   = 5
    roles  = "agent"
  }
}
policy {
  mode             = "supervized"
  actions_per_hour = 0
  commands {}
  paths {}
  urls {}
  rule "x" {}
}
approvals {
  timeout          = "5s"
  patience         = "11m"
  elicitation_from = ["claude-code", "claude-code", "", "a\u202eb"]
  webhook {}
}
results {
  ttl   = "59s"
  quota = "1KiB"
}
journal {
  keep     = "23h"
  max_size = "1KiB"
}
plugin "fs" {
  tier = "side_effecting"
  approval {
    read_only      = "alow"
    side_effecting = true
    privileged     = "confirm"
    all            = "ask"
  }
  tool "write_file" {
    approval       = "ask"
    allow_standing = true
    rate           = "30 / m"
  }
  tool "edit_file" {
    allow_standing = false
    rate           = "0/s"
  }
  tool "copy_file" {
    approval       = "confrm"
    allow_standing = "often"
    rate           = 30
  }
}
plugin "off" {
  enabled = false
  tier    = "read_only"
  approval {
    privileged = "never"
  }
  tool "x" {
    approval = "never"
  }
}
