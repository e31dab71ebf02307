# The default configuration. docs/configuration.md describes every setting and what holds
# without it. Relative paths are relative to the directory of this file.
#
#   toolhost validate          checks it and reports each mistake with its line
#   toolhost explain TOOL ...  shows what would happen to a call, and why
#   toolhost reload            applies it to a running host

# Tools work in this directory and reach nothing outside of it.
workspace = "."

# `make build` puts the plugins here. No tool can change this directory, nor this file.
plugin_dir = "bin/plugins"

# Where `toolhost serve` is reached over HTTP: from this machine only. "" turns HTTP off.
# To let others in beside you, add what `toolhost token new` prints.
server { listen = "127.0.0.1:7780" }

# "supervised" runs calls that read, and asks you about calls that change something
# (`toolhost approvals list`), as the plugins below say: "allow" runs a call, "ask" asks you
# and offers to let later calls run, "confirm" asks each time, "deny" refuses it.
# The mode "read_only" denies every change; "autonomous" asks only where "confirm" is said.
policy {
  mode             = "supervised"
  actions_per_hour = 600 # calls of each user that change something; or "unlimited"

  # Beginnings of shell commands that run unasked, and of those that never run. Of a
  # program that the host knows, only harmless uses are covered: "find", not "find -delete".
  commands {
    allow = [
      "ls", "cat", "head", "tail", "wc", "grep", "rg", "find", "sed", "sort", "uniq", "cut", "tr", "diff", "tree", "jq",
      "cmp", "comm", "join", "paste", "nl", "tac", "rev", "fold", "column", "od", "xxd", "file", "stat", "du", "df",
      "pwd", "cd", "read", "echo", "printf", "test", "[", "true", "false", "basename", "dirname", "realpath", "readlink", "seq",
      "date", "which", "env", "id", "whoami", "uname", "nproc", "md5sum", "sha1sum", "sha256sum",
      "git status", "git log", "git diff", "git show", "git blame", "git ls-files", "git rev-parse", "git branch",
      "git tag", "git remote", "git describe", "git shortlog", "git merge-base", "git ls-tree",
    ]
    deny = ["sudo", "su", "mkfs", "dd", "shutdown", "reboot"]
  }
}

# Each plugin is a program of its own, in a sandbox that gives it the workspace, no network
# and no other program, unless its block says otherwise. `toolhost doctor` shows what this
# machine enforces. tier bounds what the plugin's tools may do; claims = "trust" takes the
# plugin's word for what each of them does.

# Files in the workspace.
plugin "fs" {
  tier   = "privileged"
  claims = "trust"
  approval { side_effecting = "ask" }
  sandbox {
    limits { memory = "1GiB" } # with a process of 320MiB that reads PDFs and images
    filesystem { read = ["/proc"] } # to watch this process, without a /proc of its own
  }
  tool "delete_file" {
    approval = "confirm"
    rate     = "30/m" # calls per second (s), minute (m) or hour (h)
  }
}

# Git repositories. No program that a repository names is executed. Remotes: docs/git.md.
plugin "git" {
  tier   = "privileged"
  claims = "trust"
  approval { side_effecting = "ask" }
  sandbox {
    limits {
      file_size = "4GiB"   # packs and large files of repositories
      tmp_size  = "256MiB" # previews of commits
    }
    filesystem {
      exec    = ["/usr/bin/git", "/usr/lib/git-core", "/usr/libexec/git-core", "/bin/sh", "/usr/bin/ssh"] # accept: missing
      protect = ["hooks", "editor", "agents"] # without "git": branches are in .git/config
    }
  }
}

# Commands, with the programs of the system and of the workspace.
plugin "shell" {
  tier         = "privileged"
  claims       = "trust"
  idle_timeout = "4h" # not less than its session_idle: jobs end with the plugin
  config { path = "/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" }
  approval { privileged = "confirm" } # except what commands.allow lists; builds = "allow": and builds
  sandbox {
    limits {
      memory     = "2GiB"
      processes  = 1024
      open_files = 4096
      file_size  = "2GiB"
      tmp_size   = "2GiB"
    }
    filesystem { exec = ["system", "workspace", "home", "tmp"] }
  }
  tool "process_kill" { approval = "allow" } # reaches only jobs of its own session
}

# Public web pages. You are asked about each host once; allow = ["*"] in the network block
# allows all public hosts. web_search exists once config names a service; then add a tool block for it.
plugin "web" {
  tier   = "privileged"
  claims = "trust"
  sandbox {
    limits { memory = "1GiB" } # with two processes of 320MiB that read documents
    filesystem {
      workspace = "none"
      read      = ["/proc"] # to watch these processes, without a /proc of its own
    }
    network {
      mode = "proxy" # of the host, which refuses private addresses
      ask  = true
    }
  }
  tool "web_fetch" { approval = "allow" }
}

# Notes of each user, kept between conversations.
plugin "memory" {
  tier   = "side_effecting"
  claims = "trust"
  approval { side_effecting = "allow" } # the agent changes and deletes notes unasked
  sandbox {
    limits {
      memory    = "1GiB" # two fifths of it for the indexes of notes in use
      file_size = "4GiB" # the notes of one user
    }
    filesystem { workspace = "none" }
  }
}
