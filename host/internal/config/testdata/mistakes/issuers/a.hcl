workspace = "."
auth {
  issuer "corp" {
    url      = "http://login.example.com"
    audience = ""
  }
  issuer "corp" {
    url          = "https://login.example.com"
    audience     = "https://tools.example.com"
    user_claim   = "groups"
    roles        = { leads = ["aprover"], ops = "admin", both = ["agent", "admin"], leads = ["approver"], "" = ["agent"], none = [] }
    scopes       = ["openid", "two words", "openid"]
  }
  issuer "partner" {
    url      = "https://login.example.com"
    audience = "https://tools.example.com"
    roles    = ["approver"]
  }
  issuer "ci-agent" {
    url      = "https://user@login.example.com/ci"
    audience = 7
  }
  issuer "Big One" {}
  issuer "local" {
    url          = 5
    audience     = "x"
    groups_claim = " groups"
    user         = "email"
  }
  token "ci-agent" {
    sha256 = "d3aa4f9c6db1a36f1c1d4a1b5e0b7fd2b0a5d0f3c1c2d4e5f60718293a4b5c6d"
    user   = "ci"
    roles  = ["agent"]
  }
}
