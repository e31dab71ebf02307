server {
  listen = "localhost"
  patience = "1s"
}
policy {
  actions_per_hour = 1.5
  mode             = 1
}
approvals {
  timeout  = "1m"
  patience = "61s"
}
approvals {
  timeout  = "10"
  patience = "-1s"
}
results {
  ttl   = "8d"
  quota = "17GiB"
  keep  = "1h"
}
results {
  ttl   = "an hour"
  quota = 5
}
journal {
  keep     = "3 days"
  max_size = "1GB"
}
approval = "ask"
policy = "supervised"
