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
  token "ci-agent" {
    sha256 = "20844d48e844281d54c16e71e6fd776ea0cf9c94992dc64b8eac57a8b89d7517"
    user   = "ci"
    roles  = ["agent"]
  }
}
