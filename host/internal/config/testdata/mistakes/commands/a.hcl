policy {
  commands {
    allow = [
      "ls",
      "ls",
      "",
      "git status | head",
      "echo 'a b'",
      "npm * run",
      "*",
      "sudo ls",
      7,
    ]
    deny            = ["sudo", "rm -rf; ls"]
    unlisted        = "allow"
    assign          = ["LANG", "LANG", "A B"]
    write_redirects = ["", "/dev/../dev/null"]
    block_high_risk = "sometimes"
    risk {
      low  = "always"
      none = "ask"
      high = "ask"
      allow_standing = true
    }
    risk {
    }
  }
  paths {
    workspace_only = 1
    forbidden      = ["", "~/.ssh", "**/{a", "**/.env", "**/.env/"]
  }
  urls {
    allow_domains = ["example.org", "https://example.org", "EXAMPLE.org.", "*.example.org"]
  }
  urls {
  }
}
