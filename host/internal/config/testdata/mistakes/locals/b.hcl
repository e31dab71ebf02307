locals {
  root = "/"
  big  = file("missing.txt")
}
plugin "fs" {
  tier = local.fin
  config {
    max_read = local.bg
    hidden   = local["absent"]
  }
}
