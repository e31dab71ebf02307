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
	AuthorName  string        `json:"author_name,omitempty" jsonschema:"the author's name in new commits; default: user.name in the repository's configuration"`
	AuthorEmail string        `json:"author_email,omitempty" jsonschema:"the author's email address in new commits; default: user.email in the repository's configuration"`
	Protocols   []string      `json:"protocols,omitempty" jsonschema:"the allowed protocols of remotes: https, ssh, http, git, file; default: only https"`
	Patience    time.Duration `json:"remote_timeout,omitempty" jsonschema:"the maximum time for one exchange with a remote, including the transfer; at most 30m" default:"5m"`
	Credentials []credential  `json:"credentials,omitempty" jsonschema:"the credentials for remotes; the first entry whose url matches applies"`
	CAFile      string        `json:"ca_file,omitempty" jsonschema:"a file with the certificates of the authorities to trust instead of the system's: an absolute path, listed under filesystem.read of the sandbox"`
	Secrets     []string      `json:"secrets,omitempty" jsonschema:"no longer a setting: use sensitive in the paths block of the policy"`
	SSH         sshSettings   `json:"ssh,omitzero" jsonschema:"settings for remotes that use ssh"`
}

// credential is a login for remotes whose address begins with URL.
type credential struct {
	URL      string `json:"url" jsonschema:"the beginning of the remote's address with scheme and host, such as https://example.com/team/"`
	Username string `json:"username,omitempty" jsonschema:"the user name at the remote; default: git"`
	Secret   string `json:"secret,omitempty" jsonschema:"the name of the secret with the password or token; grant it with secrets in the plugin's block"`
	Helper   string `json:"helper,omitempty" jsonschema:"a git credential helper instead of a secret: an absolute path, listed under filesystem.exec of the sandbox"`
}

// sshSettings configure ssh.
type sshSettings struct {
	Program    string `json:"program,omitempty" jsonschema:"the ssh program, an absolute path" default:"/usr/bin/ssh"`
	Key        string `json:"key,omitempty" jsonschema:"the file with the private key: an absolute path, listed under filesystem.read of the sandbox"`
	KnownHosts string `json:"known_hosts,omitempty" jsonschema:"the file with the keys of hosts: an absolute path, listed under filesystem.read of the sandbox; hosts that are not in it are refused" default:"/etc/ssh/ssh_known_hosts"`
}

const (
	defaultPatience = 5 * time.Minute
	maxPatience     = 30 * time.Minute
)

// complete sets the defaults, also if the plugin was never configured.
func (s *settings) complete() {
	s.Program = cmp.Or(s.Program, "/usr/bin/git")
	s.Patience = cmp.Or(s.Patience, defaultPatience)
	s.SSH.Program = cmp.Or(s.SSH.Program, "/usr/bin/ssh")
	s.SSH.KnownHosts = cmp.Or(s.SSH.KnownHosts, "/etc/ssh/ssh_known_hosts")
	if s.Protocols == nil {
		s.Protocols = []string{"https"}
	}
}

// protocols returns the protocols that the settings can allow.
func protocols() []string { return []string{"https", "ssh", "http", "git", "file"} }

// configure applies the settings. The host sends them before the first call.
func (g *git) configure(_ context.Context, c sdk.Config, s settings) error {
	if err := s.check(); err != nil {
		return err
	}
	s.complete()
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
		return &sdk.SettingError{Path: []string{"author_name"}, Summary: "author_name and author_email must be set together, without angle brackets and line breaks"}
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
		return "expected either secret or helper"
	case c.Helper != "" && !filepath.IsAbs(c.Helper):
		return fmt.Sprintf("helper is %q, expected an absolute path", c.Helper)
	case strings.ContainsAny(c.Username, "\n\x00"):
		return "username contains a line break or NUL byte"
	}
	return ""
}
