policy {
  mode = "supervized"
}
policy {}
policy = {}
server = "127.0.0.1:7780"
journal "mine" {
  keep = "1d"
}
