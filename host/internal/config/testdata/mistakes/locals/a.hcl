locals {
  root  = "."
  sub   = "${local.rot}/sub"
  one   = local.two
  two   = "${local.one}"
  base  = evn("HOME")
  key   = env("NOT_SET")
  fine  = upper(local.root)
}
workspace = local.sub
plugin_dir = loca.root
