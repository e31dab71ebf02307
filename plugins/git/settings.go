package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/sdk"
)

// settings are the plugin's block in the host's configuration.
type settings struct {
	Program     string        `json:"program,omitempty" jsonschema:"the git program, an absolute path" default:"/usr/bin/git"`
	AuthorName  string        `json:"author_name,omitempty" jsonschema:"the name of commits that are made here; without it, user.name of the repository's configuration"`
	AuthorEmail string        `json:"author_email,omitempty" jsonschema:"the address of commits that are made here; without it, user.email of the repository's configuration"`
	Protocols   []string      `json:"protocols,omitempty" jsonschema:"how remotes may be reached: https, ssh, http, git, file; without it, https alone"`
	Patience    time.Duration `json:"remote_timeout,omitempty" jsonschema:"how long a remote has to answer, with all that is transferred; at most 30m" default:"5m"`
	Credentials []credential  `json:"credentials,omitempty" jsonschema:"what remotes are told to prove who calls; the first one whose address fits counts"`
	CAFile      string        `json:"ca_file,omitempty" jsonschema:"the file with the certificates of authorities that remotes are trusted by, instead of the system's: an absolute path, listed under filesystem.read of the sandbox"`
	Secrets     []string      `json:"secrets,omitempty" jsonschema:"no longer a setting: which files are sensitive is said by sensitive in the paths block of the policy"`
	SSH         sshSettings   `json:"ssh,omitzero" jsonschema:"how remotes are reached by ssh"`
}

// credential is what a remote is told.
type credential struct {
	URL      string `json:"url" jsonschema:"the beginning of the remote's address, with its scheme and host, such as https://example.com/team/"`
	Username string `json:"username,omitempty" jsonschema:"the user there; without it, git"`
	Secret   string `json:"secret,omitempty" jsonschema:"the name of the secret that is the password or token; it is granted in secrets of the plugin's block"`
	Helper   string `json:"helper,omitempty" jsonschema:"instead of a secret, a git credential helper: an absolute path, listed under filesystem.exec of the sandbox"`
}

// sshSettings say how ssh is run.
type sshSettings struct {
	Program    string `json:"program,omitempty" jsonschema:"the ssh program, an absolute path" default:"/usr/bin/ssh"`
	Key        string `json:"key,omitempty" jsonschema:"the file with the private key, an absolute path, listed under filesystem.read of the sandbox"`
	KnownHosts string `json:"known_hosts,omitempty" jsonschema:"the file with the keys of hosts, an absolute path, listed under filesystem.read of the sandbox; hosts that are not in it are refused" default:"/etc/ssh/ssh_known_hosts"`
}

const (
	defaultPatience = 5 * time.Minute
	maxPatience     = 30 * time.Minute
)

// complete fills in what a configuration that was never given leaves out.
func (s *settings) complete() {
	s.Program = cmp.Or(s.Program, "/usr/bin/git")
	s.Patience = cmp.Or(s.Patience, defaultPatience)
	s.SSH.Program = cmp.Or(s.SSH.Program, "/usr/bin/ssh")
	s.SSH.KnownHosts = cmp.Or(s.SSH.KnownHosts, "/etc/ssh/ssh_known_hosts")
	if s.Protocols == nil {
		s.Protocols = []string{"https"}
	}
}

// protocols are the ways to reach a remote that settings can allow.
func protocols() []string { return []string{"https", "ssh", "http", "git", "file"} }

// configure takes the settings, which come before the first call.
func (g *git) configure(_ context.Context, p *sdk.Plugin, c sdk.Config, s settings) error {
	if err := s.check(); err != nil {
		return err
	}
	s.complete()
	var secrets []string
	for _, c := range s.Credentials {
		if c.Secret != "" && !slices.Contains(secrets, c.Secret) {
			secrets = append(secrets, c.Secret)
		}
	}
	p.WantSecrets(secrets...)
	g.scratch = c.ScratchDir
	g.settings.Store(&s)
	return nil
}

func (s *settings) check() error {
	for _, path := range []struct{ value, setting, within string }{
		{s.Program, "program", ""}, {s.CAFile, "ca_file", ""}, {s.SSH.Program, "program", "ssh"}, {s.SSH.Key, "key", "ssh"}, {s.SSH.KnownHosts, "known_hosts", "ssh"},
	} {
		if path.value != "" && !filepath.IsAbs(path.value) {
			at := []string{path.setting}
			if path.within != "" {
				at = []string{path.within, path.setting}
			}
			return &sdk.SettingError{Path: at, Summary: fmt.Sprintf("%s is %q, expected an absolute path", path.setting, path.value)}
		}
	}
	if s.Secrets != nil {
		return &sdk.SettingError{Path: []string{"secrets"}, Summary: `secrets is no longer a setting: for all plugins, write sensitive = ["default", ...] in the paths block of the policy`}
	}
	if (s.AuthorName == "") != (s.AuthorEmail == "") || strings.ContainsAny(s.AuthorName+s.AuthorEmail, "<>\n\x00") {
		return &sdk.SettingError{Path: []string{"author_name"}, Summary: "author_name and author_email must both be given, without angle brackets and line breaks"}
	}
	for i, protocol := range s.Protocols {
		if !slices.Contains(protocols(), protocol) {
			return &sdk.SettingError{
				Path:    []string{"protocols", strconv.Itoa(i)},
				Summary: fmt.Sprintf("%q is not a protocol, expected one of %s", protocol, strings.Join(protocols(), ", ")),
			}
		}
	}
	if s.Patience < 0 || s.Patience > maxPatience {
		return &sdk.SettingError{Path: []string{"remote_timeout"}, Summary: fmt.Sprintf("remote_timeout is %v, expected at most %v", s.Patience, maxPatience)}
	}
	for i, c := range s.Credentials {
		if err := c.check(); err != "" {
			return &sdk.SettingError{Path: []string{"credentials", strconv.Itoa(i)}, Summary: err}
		}
	}
	return nil
}

func (c *credential) check() string {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Sprintf("url is %q, expected a scheme and a host, such as https://example.com/", c.URL)
	case u.Scheme != "https" && u.Scheme != "http":
		return fmt.Sprintf("url is %q, expected https:// or http://", c.URL)
	case (c.Secret == "") == (c.Helper == ""):
		return "expected either a secret or a helper"
	case c.Helper != "" && !filepath.IsAbs(c.Helper):
		return fmt.Sprintf("helper is %q, expected an absolute path", c.Helper)
	case strings.ContainsAny(c.Username, "\n\x00"):
		return "username holds a line break"
	}
	return ""
}
