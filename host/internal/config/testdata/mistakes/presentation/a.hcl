workspace = "."
toolset "readers" {
  tools = ["read_*", "read_*", "Read File"]
}
toolset "readers" {}
toolset "Read All" {
  tools = ["*"]
}
client "codex-mcp-client" {
  max_output = "13KB"
}
client "other" {
  max_output = "1MiB"
  structurd  = true
}
client "other" {
  structured = "yes please"
}
client " spaced " {}
client "none" { tool_search_above = 0 }
client "huge" { tool_search_above = 100001 }
client "part" { tool_search_above = 1.5 }
auth {
  token "ci" {
    sha256  = "d3aa4f9c6db1a36f1c1d4a1b5e0b7fd2b0a5d0f3c1c2d4e5f60718293a4b5c6d"
    user    = "ci"
    roles   = ["agent"]
    toolset = "reader"
  }
  token "boss" {
    sha256     = "e3aa4f9c6db1a36f1c1d4a1b5e0b7fd2b0a5d0f3c1c2d4e5f60718293a4b5c6d"
    user       = "boss"
    roles      = ["approver"]
    structured = true
  }
}
