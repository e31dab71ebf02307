workspace = "."
plugin "fs" { tier = "read_only" tool "x" {} }
unknown = 1
