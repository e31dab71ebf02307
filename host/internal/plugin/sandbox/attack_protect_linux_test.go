package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// protectAttacks change protected files in a writable workspace.
func protectAttacks() []attack {
	const hook = "workspace/.git/hooks/pre-commit"
	// A place whose content must stay, and the attempt.
	keep := func(path, content string, program ...string) func(*scene) attempt {
		return func(s *scene) attempt {
			return attempt{program: program, happened: changed(s.path(path), content)}
		}
	}
	return append(presetAttacks(), []attack{
		{name: "change a protected file (`.git/hooks/*`)", root: "is", stage: keep(hook, "true", "overwrite", ".git/hooks/pre-commit")},
		{name: "add a file to a protected directory", root: "is", stage: func(s *scene) attempt {
			return attempt{program: []string{"create", ".git/hooks/post-commit"}, happened: exists(s.path("workspace/.git/hooks/post-commit"))}
		}},
		{name: "remove a protected file", root: "is", stage: keep("workspace/config.hcl", "strict", "remove", "config.hcl")},
		{name: "replace a protected file by renaming another", root: "is", stage: keep("workspace/config.hcl", "strict", "replace", "config.hcl")},
		{name: "rename a protected directory away", root: "is", stage: keep(hook, "true", "rename", ".git/hooks")},
		{name: "rename the parent of a protected directory away (`.git`)", root: "is", stage: keep(hook, "true", "rename", ".git")},
		{name: "exchange the parent of a protected directory (`RENAME_EXCHANGE`)", root: "is", stage: keep(hook, "true", "exchange", ".git")},
		{name: "rename a grandparent of a protected path away", root: "is", stage: func(s *scene) attempt {
			s.mkdir("workspace/a", 0o755)
			s.mkdir("workspace/a/b", 0o755)
			s.mkdir("workspace/a/b/c", 0o755)
			s.write("workspace/a/b/c/d", "true", 0o644)
			s.giveWorkspace()
			return attempt{
				program:  []string{"rename", "a"},
				profile:  func(p *Profile) { p.Confinement.Protect = append(p.Confinement.Protect, "a/b/c/d", "a/b") },
				happened: changed(s.path("workspace/a/b/c/d"), "true"),
			}
		}},
		{name: "write through a hard link of a protected file", root: "is", stage: keep("workspace/config.hcl", "strict", "linkwrite", "config.hcl", "new")},
		{name: "write through a symbolic link to a protected file", root: "is", stage: keep("workspace/config.hcl", "strict", "symlinkwrite", "config.hcl", "new")},
		{name: "replace the configuration in a workspace that is a symbolic link", root: "is", stage: func(s *scene) attempt {
			t := s.t
			must(t, os.Symlink(s.workspace, s.path("link")))
			return attempt{
				program:  []string{"replace", s.workspace + "/config.hcl"},
				profile:  func(p *Profile) { p.Workspace = s.path("link") },
				happened: changed(s.workspace+"/config.hcl", "strict"),
			}
		}},
		{name: "replace the configuration that is protected by way of a symbolic link", root: "is", stage: func(s *scene) attempt {
			t := s.t
			must(t, os.Symlink(s.workspace, s.path("link")))
			return attempt{
				program:  []string{"replace", "config.hcl"},
				profile:  func(p *Profile) { p.Protected = []string{s.path("link/config.hcl")} },
				happened: changed(s.workspace+"/config.hcl", "strict"),
			}
		}},
		{name: "replace a protected path that is a symbolic link", root: "is", stage: func(s *scene) attempt {
			t := s.t
			must(t, os.Rename(s.workspace+"/.git/hooks", s.workspace+"/hooks"))
			must(t, os.Symlink("../hooks", s.workspace+"/.git/hooks"))
			s.giveWorkspace()
			return attempt{program: []string{"replacelink", ".git/hooks"}, happened: changed(s.path(hook), "true")}
		}},
		{name: "change what a protected symbolic link leads to", root: "is", stage: func(s *scene) attempt {
			t := s.t
			must(t, os.Rename(s.workspace+"/.git/hooks", s.workspace+"/hooks"))
			must(t, os.Symlink("../hooks", s.workspace+"/.git/hooks"))
			s.giveWorkspace()
			return attempt{program: []string{"overwrite", "hooks/pre-commit"}, happened: changed(s.path(hook), "true")}
		}},
		{name: "replace the directory of a protected path that is a symbolic link", root: "is", stage: func(s *scene) attempt {
			t := s.t
			must(t, os.Rename(s.workspace+"/.git", s.workspace+"/real"))
			must(t, os.Symlink("real", s.workspace+"/.git"))
			s.giveWorkspace()
			return attempt{program: []string{"replacelink", ".git"}, happened: func(t *testing.T, _ string) bool {
				t.Helper()
				_, err := os.Readlink(s.workspace + "/.git")
				return err != nil
			}}
		}},
		{name: "change a protected file in a workspace that is read-only but for a listed directory", root: "is", stage: func(s *scene) attempt {
			return attempt{
				program: []string{"overwrite", "config.hcl"},
				profile: func(p *Profile) {
					p.Confinement.Workspace, p.Confinement.Write = ReadWorkspace, []string{s.workspace}
					p.Confinement.RunAs = RunAs{Mode: RunAsUser, UID: owner, GID: owner}
					if os.Geteuid() != 0 {
						p.Confinement.RunAs = RunAs{}
					}
				},
				happened: changed(s.workspace+"/config.hcl", "strict"),
			}
		}},
		{name: "change a protected file in a workspace in `/tmp`", root: "is", stage: func(s *scene) attempt {
			dir, err := os.MkdirTemp("/tmp", "toolhost-attack-")
			must(s.t, err)
			must(s.t, os.Chmod(dir, 0o755))
			s.t.Cleanup(func() { must(s.t, os.RemoveAll(dir)) })
			path := filepath.Join(dir, "config.hcl")
			must(s.t, os.WriteFile(path, []byte("strict"), 0o644))
			if os.Geteuid() == 0 {
				s.give(dir)
			}
			return attempt{
				program: []string{"replace", path},
				profile: func(p *Profile) {
					p.Workspace, p.Dir = dir, dir
					p.Protected, p.Confinement.Protect = []string{path}, []string{"config.hcl"}
				},
				happened: changed(path, "strict"),
			}
		}},
		{name: "make a protected path that does not exist yet", root: nowhere, stage: func(s *scene) attempt {
			t := s.t
			must(t, os.RemoveAll(s.workspace+"/.git/hooks"))
			return attempt{program: []string{"create", ".git/hooks"}, happened: exists(s.workspace + "/.git/hooks")}
		}},
		{name: "change a protected path with a line feed in its name", root: "is", stage: func(s *scene) attempt {
			const name = "a\nb\\012,c=d"
			s.write("workspace/"+name, "strict", 0o644)
			s.giveWorkspace()
			return attempt{
				program:  []string{"overwrite", name},
				profile:  func(p *Profile) { p.Confinement.Protect = append(p.Confinement.Protect, name) },
				happened: changed(s.path("workspace/"+name), "strict"),
			}
		}},
		{name: "close the parent of a protected path, so that it is not found at the next start (`chmod`)", root: all, stage: func(s *scene) attempt {
			t := s.t
			must(t, os.Chmod(s.workspace+"/.git", 0)) // the plugin's actions in an earlier run
			return attempt{program: []string{"openoverwrite", ".git", ".git/hooks/pre-commit"}, happened: func(t *testing.T, out string) bool {
				t.Helper()
				must(t, os.Chmod(s.workspace+"/.git", 0o755))
				return changed(s.path(hook), "true")(t, out)
			}}
		}},
		{name: "change a program of the plugins (`plugin_dir` in the workspace)", root: "is", stage: keep("workspace/bin/plugin", "honest", "overwrite", "bin/plugin")},
		{name: "change a protected directory that may be written by name", root: "is", stage: func(s *scene) attempt {
			return attempt{
				program:  []string{"overwrite", "bin/plugin"},
				profile:  func(p *Profile) { p.Confinement.Write = []string{s.workspace + "/bin"} },
				happened: changed(s.path("workspace/bin/plugin"), "honest"),
			}
		}},
		{name: "have a listed path lead elsewhere at the next start (symbolic link to a private directory)", root: all, stage: func(s *scene) attempt {
			t := s.t
			// The plugin's actions in an earlier run. A listed path means the file that it leads
			// to.
			must(t, os.Symlink(s.home, s.workspace+"/data"))
			return attempt{
				program:  []string{"read", s.workspace + "/data/public"},
				profile:  func(p *Profile) { p.Confinement.Read = []string{s.workspace + "/data"} },
				happened: printed(s.secret),
			}
		}},
		{name: "have a listed path lead to the state directory at the next start", root: all, stage: func(s *scene) attempt {
			t := s.t
			must(t, os.Symlink(s.state, s.workspace+"/data"))
			must(t, os.Chmod(s.state+"/approver.key", 0o644))
			must(t, os.Chmod(s.state, 0o755))
			return attempt{
				program:  []string{"read", s.workspace + "/data/approver.key"},
				profile:  func(p *Profile) { p.Confinement.Read = []string{s.workspace + "/data"} },
				happened: printed(s.secret),
			}
		}},
		{name: "write through a listed path that may be read and leads elsewhere", root: all, stage: func(s *scene) attempt {
			t := s.t
			must(t, os.Symlink(s.other, s.workspace+"/data"))
			return attempt{
				program:  []string{"overwrite", s.other + "/notes"},
				profile:  func(p *Profile) { p.Confinement.Read = []string{s.workspace + "/data"} },
				happened: changed(s.other+"/notes", s.secret),
			}
		}},
	}...)
}

func (s *scene) giveWorkspace() {
	if os.Geteuid() == 0 {
		s.give(s.workspace)
	}
}

// protectPrograms are the programs of protectAttacks, in addition to those for files.
func protectPrograms() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"replace": func(args []string) error {
			other := filepath.Join(filepath.Dir(args[0]), "other")
			if err := os.WriteFile(other, []byte("attack"), 0o666); err != nil {
				return err
			}
			return os.Rename(other, args[0])
		},
		"exchange": exchange,
		"openoverwrite": func(args []string) error {
			if err := os.Chmod(args[0], 0o755); err != nil {
				return err
			}
			return overwrite(args[1])
		},
		"replacelink": func(args []string) error {
			if err := os.Remove(args[0]); err != nil {
				return err
			}
			if err := os.Mkdir(args[0], 0o777); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(args[0], "pre-commit"), []byte("attack"), 0o777)
		},
	}
}
