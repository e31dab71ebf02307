workspace = "."
auth {
  token "empty" {
    sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    user   = "ada"
    roles  = ["approver", "admin"]
  }
  token "word" {
    sha256 = "b37e50cedcd3e3f1ff64f4afc0422084ae694253cf399326868e07a35f4a45fb"
    user   = "ada"
    roles  = ["agent"]
  }
  token "asker" {
    sha256      = "5b1e0f7a9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f"
    user        = "ada"
    roles       = ["approver"]
    elicitation = true
  }
  token "typed" {
    sha256      = "d3aa4f9c6db1a36f1c1d4a1b5e0b7fd2b0a5d0f3c1c2d4e5f60718293a4b5c6d"
    user        = "ada"
    roles       = ["agent"]
    elicitation = "claude-code"
  }
  token "soon" {
    sha256  = "7d5e4f3a2b1c0d9e8f7a6b5c4d3e2f5b1e0f7a9c8d7e6f5a4b3c2d1e0f9a8b7c"
    user    = "ada"
    roles   = ["agent"]
    expires = "soon"
    account = "no-such-account"
  }
  token "ci-agent" {
    sha256 = "20844d48e844281d54c16e71e6fd776ea0cf9c94992dc64b8eac57a8b89d7517"
    user   = "ci"
    roles  = ["agent"]
  }
}
