# The configuration that toolhost starts with when it is run here. Relative
# paths are relative to the directory of this file. `toolhost validate` checks
# it and reports every mistake with its line; `toolhost reload` makes a running
# host take it over.

# The directory that the tools work in. They reach nothing outside of it.
workspace = "."

# Where the plugins named below are; `make build` puts them there. No tool may
# change anything in it, nor this file.
plugin_dir = "bin/plugins"

# Where the host keeps what must outlive it: never inside the workspace. The
# default is $XDG_STATE_HOME/toolhost/... (usually below ~/.local/state), or
# /var/lib/toolhost/... for root.
# state_dir = "/var/lib/toolhost/mine"

# Where `toolhost serve` is reached over HTTP. Only this machine can; "" turns
# HTTP off.
server {
  listen = "127.0.0.1:7780"
}

# Who may come over HTTP beside you. `toolhost token new` prints such a block.
# auth {
#   token "ci" {
#     sha256 = "..."     # of the token, which nobody but its owner has
#     user   = "ci"      # whose calls they are
#     roles  = ["agent"] # may call tools; "approver" decides about calls
#   }
# }

# What runs without asking you. "supervised" asks as the levels say: calls that
# read run, calls that change something wait for you (`toolhost approvals
# list`). "read_only" denies every change; "autonomous" asks only where it says
# "confirm". `toolhost explain` says what would happen to a call, and why.
policy {
  mode             = "supervised"
  actions_per_hour = 600 # calls of each user that change something; or "unlimited"

  # Shell commands: what they may begin with to run unasked, and what none may.
  # Only harmless uses of a program that the host knows are covered: "find", and
  # not "find -delete".
  commands {
    allow = [
      "ls", "cat", "head", "tail", "wc", "grep", "rg", "find", "sed", "sort", "uniq", "cut", "tr", "diff", "tree",
      "pwd", "cd", "echo", "printf", "test", "[", "true", "false", "basename", "dirname", "date",
      "git status", "git log", "git diff", "git show", "git blame", "git ls-files", "git rev-parse",
    ]
    deny = ["sudo", "su", "mkfs", "dd", "shutdown", "reboot"]
  }
}

# How long you have to answer.
approvals {
  timeout  = "10m" # then the call is refused
  patience = "45s" # then the agent is told to come back for the answer

  # To be asked in an MCP client itself, give it a token of its own: run
  # toolhost token new NAME --elicitation. Only for a client that shows you the
  # question, and cannot answer it by itself.
}

# How much is kept of output that was too long for its caller, which reads on
# with the tool result_read.
results {
  ttl   = "1h"     # how long
  quota = "256MiB" # of each user; the oldest goes first
}

# How much is kept of the record of all calls (`toolhost journal query`).
journal {
  keep     = "90d"
  max_size = "1GiB"
}

# How a plugin is kept apart from the machine. Plugins that name no other sandbox
# get this one; all of it is what holds anyway. `toolhost plugins list` says what
# is in force, and what this machine cannot enforce.
sandbox "default" {
  isolation  = "auto"                      # the best that works here; or "off", "basic", "isolated", "strict"
  require    = ["rlimits", "no_new_privs"] # layers without which it does not start;
  on_missing = "refuse"                    # or "warn", to start it all the same
  run_as     = "auto"                      # if the host is root: or "host", or a user

  # What each process may use at most, by setrlimit(2), and the size of all
  # temporary files. Every limit can be "unlimited", except core and tmp_size.
  limits {
    memory        = "512MiB" # heap and private mappings; at least 192MiB
    open_files    = 256
    file_size     = "256MiB" # the largest file that can be written
    stack         = "8MiB"
    core          = "0B"        # no core files, which would hold secrets
    processes     = 0           # the sandbox chooses: 256 if they can be counted for it alone
    cpu_time      = "unlimited" # over the whole life of the process
    address_space = "unlimited" # small values keep Go programs from starting
    tmp_size      = "64MiB"
  }

  # What it may do with files, beside its program and a directory of its own.
  filesystem {
    workspace = "rw" # read and change; or "ro", "none"
    read      = []   # paths elsewhere to read,
    write     = []   # to read and change,
    exec      = []   # and to execute, with the words "system", "workspace", "tmp"

    # What it may not change in the workspace: files that have git, editors and
    # agents run programs, wherever they are; and paths.
    protect = ["git", "hooks", "editor", "agents"]
  }

  network {
    mode = "none" # or "host", for all that this machine reaches
  }

  env {
    pass = ["TZ"] # variables of the host's environment that plugins get
  }
}

# One block for each plugin: a program of its own, started when the first of
# its tools is called.
plugin "fs" {
  path = "fs" # in plugin_dir; an absolute path names a program anywhere

  # The most that a tool of this plugin may be: "read_only", "side_effecting"
  # or "privileged". Tools above it are left out, and `toolhost plugins list`
  # says so.
  tier = "privileged"

  # Take the plugin's word for what each of its tools is. Without this, each
  # tool counts as the tier above unless a tool block says otherwise.
  claims = "trust"

  # The plugin's own settings; it says itself which there are.
  config {
    max_read  = "1MiB" # how much of one file a call returns at most
    trash_age = "720h" # how long restore_file can bring back what was deleted

    # Directories elsewhere that vault_copyto copies files from; list them in
    # filesystem.read of the sandbox, too.
    # vaults = { templates = "/srv/templates" }
  }

  # What happens to the calls of a tier: "allow" runs them, "ask" asks you, and
  # you may let later ones run, too; "confirm" asks each time; "deny" refuses them.
  # Left out, it is allow for read_only, ask for side_effecting, confirm for
  # privileged.
  approval {
    side_effecting = "ask"
  }

  # What you want to be different for a single tool.
  tool "delete_file" {
    approval = "confirm"
    rate     = "30/m" # calls per second (s), minute (m) or hour (h)
  }
  # A tool block also takes enabled, tier, timeout, max_output and aliases; see
  # docs/configuration.md.
}

# Repositories in the workspace, by the program git. What a repository says itself
# (filters, hooks, drivers, aliases) is never executed.
plugin "git" {
  path   = "git"
  tier   = "privileged"
  claims = "trust"

  # To reach remotes, the plugin needs the network (below), and for anything but
  # https a word here.
  # config {
  #   protocols   = ["https", "ssh"]
  #   credentials = [{ url = "https://example.com/", username = "git", secret = "example" }]
  # }

  approval {
    side_effecting = "ask"
  }

  sandbox {
    limits {
      file_size = "4GiB"   # packs and large files of repositories
      tmp_size  = "256MiB" # what previews of commits take
    }
    filesystem {
      # git with its own programs, and what is needed for remotes with credentials
      # or by ssh. Without a remote, git may execute itself and nothing else.
      exec = ["/usr/bin/git", "/usr/lib/git-core", "/usr/libexec/git-core", "/bin/sh", "/usr/bin/ssh"]

      # All but "git": branches and remotes are in a repository's configuration.
      protect = ["hooks", "editor", "agents"]
    }
    # network { mode = "host" }
  }
}

# Runs commands, with the programs of the system and of the workspace.
plugin "shell" {
  path   = "shell"
  tier   = "privileged"
  claims = "trust"

  # A session's jobs and shell end with it; one that nobody ends, when it has
  # called nothing for session_idle. The plugin must not stop before.
  idle_timeout = "4h"

  config {
    backend      = "host" # each command in a shell of its own; "session", in one that lives on; or "disabled"
    timeout      = "60s"  # for a command that says nothing else,
    max_timeout  = "10m"  # and the most that one may ask for
    max_output   = "1MiB" # how much of each output is kept
    session_idle = "4h"
    path         = "/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
  }

  # Each command is confirmed, but those that commands.allow of the policy lists.
  approval {
    privileged = "confirm"
  }

  sandbox {
    limits {
      memory     = "2GiB"
      processes  = 1024
      open_files = 4096
      file_size  = "2GiB"
      tmp_size   = "2GiB"
    }
    filesystem {
      exec = ["system", "workspace", "tmp"]
    }
  }
}

# The plugin that reads the web: public hosts and nothing else. No file of the
# workspace is there for it.
plugin "web" {
  path   = "web"
  tier   = "privileged"
  claims = "trust"

  config {
    # The only domains that may be contacted, each with those below it; none
    # means any.
    # allow_domains = ["example.org"]

    # What web_search asks: a SearXNG server of yours, or "brave", "tavily",
    # "kagi" with the secret that is the key.
    # search = { provider = "searxng", url = "https://search.example.org" }

    # Which secrets http_request may put into headers, and for which domains. A
    # secret block holds the value, and secrets above grants it to the plugin.
    # secrets = { github = ["api.github.com"] }
  }

  sandbox {
    limits {
      memory = "1GiB" # with two processes that read documents, each with 320MiB at most
    }
    filesystem {
      workspace = "none"
      read      = ["/proc"] # where these are watched, if it has none of its own
    }
    network {
      mode = "host" # what it may contact is decided by the plugin itself
    }
  }

  # Reading runs; http_request asks by its method.
  tool "web_fetch" {
    approval = "allow"
  }
  tool "web_search" {
    approval = "allow"
  }
}

# Notes that the agent keeps between conversations, each user's in a file of the
# user's own. It reaches nothing but these files, and no network.
plugin "memory" {
  path   = "memory"
  tier   = "side_effecting"
  claims = "trust"

  config {
    embedder = "local" # finds words, also misspelled ones; for meaning: "ollama", "openai"
  }

  approval {
    side_effecting = "allow" # notes can be changed and deleted without asking you
  }

  sandbox {
    limits {
      memory    = "1GiB" # two fifths of it for the indexes of notes in use
      file_size = "4GiB" # the notes of one user
    }
    filesystem {
      workspace = "none"
    }
  }
}
