package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
)

// Command is the command of a secret block. It prints the value of the secret.
type Command struct {
	// Secret is the name of the secret.
	Secret string
	// Place is where the command is, e.g. "config.hcl:12".
	Place string
	// Argv is the absolute path of a program and its arguments. When it was loaded, no other
	// account could change the program.
	Argv []string
}

// argv reads a command: an absolute program and its arguments.
func (d *decoder) argv(attr *hcl.Attribute) (argv []string) {
	if d.absent(attr) {
		return nil
	}
	before := len(d.mistakes)
	words := d.words(attr, `a program and its arguments such as ["/usr/bin/pass", "show", "github"]`)
	for _, w := range words {
		if strings.ContainsRune(w.text, 0) {
			d.mistake(w.expr.Range(), "Invalid argument", "An argument of a program cannot hold a NUL character.")
		}
		argv = append(argv, w.text)
	}
	switch {
	case len(d.mistakes) > before:
	case len(argv) == 0:
		d.mistake(attr.Expr.Range(), "Missing program", `Expected the absolute path of a program, and its arguments: exec = ["/usr/bin/pass", "show", "github"].`)
	case !filepath.IsAbs(argv[0]):
		d.mistake(words[0].expr.Range(), "Relative path", "Expected the absolute path of a program, not %s: the host looks for it in no other place.", quote(words[0].expr, argv[0]))
	default:
		if err := process.CheckProgram(argv[0]); err != nil {
			d.mistake(words[0].expr.Range(), "Unusable program", "The host does not run this program: %v.", err)
		}
	}
	return argv
}

// programs returns the programs of the commands and the notifiers, and those that registry() ran.
func (d *decoder) programs() (paths []string) {
	for _, c := range d.printers {
		if filepath.IsAbs(c.Argv[0]) {
			paths = append(paths, c.Argv[0])
		}
	}
	paths = append(paths, slices.DeleteFunc(slices.Clone(d.notified), func(path string) bool { return !filepath.IsAbs(path) })...)
	return append(paths, d.asked...)
}

// ReadSecrets runs the commands of secrets that enabled plugins may request, or whose proxies inject
// them, and gives the plugins and proxies what they print, without one newline at the end. Before,
// these secrets are empty. run runs a command and returns its output.
//
// ReadSecrets is called once, before the configuration is used otherwise. The error is an [*Error]
// with every command that failed or did not print a value.
func (c *Config) ReadSecrets(run func(argv []string) (output []byte, err error)) error {
	hide := secrets{values: c.Secrets}
	var failed []Found
	for _, command := range c.Commands {
		if !c.requested(command.Secret) {
			continue
		}
		output, err := run(command.Argv)
		value := strings.TrimSuffix(string(output), "\n")
		if err == nil {
			err = checkValue(value)
		}
		if err == nil && c.injects(command.Secret) && !isHeaderValue(value) {
			err = errors.New("printed characters that no header can have, such as a line break inside the value, and an inject block adds it to one")
		}
		if err != nil {
			failed = append(failed, Found{
				Place: command.Place, Word: command.Argv[0], Summary: "No value from a command",
				Detail: hide.in(fmt.Sprintf("Secret %q: %s %v.", command.Secret, command.Argv[0], err)),
			})
			continue
		}
		hide.addLines(value)
		for i := range c.Plugins {
			p := &c.Plugins[i].Supervisor
			if contains(p.Secrets, command.Secret) {
				p.Secrets[command.Secret] = value
			}
			for _, credential := range injected(p, command.Secret) {
				credential.Value = value
			}
		}
	}
	if len(failed) > 0 {
		return c.Mistaken(failed)
	}
	c.Secrets = hide.long()
	return nil
}

// checkValue reports an output that is no value of a secret.
func checkValue(value string) error {
	switch {
	case strings.TrimSpace(value) == "":
		return errors.New("printed nothing")
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return errors.New("printed something else than a text: expected UTF-8 without a NUL character")
	}
	return nil
}

// requested reports whether an enabled plugin may request a secret, or its proxy injects it.
func (c *Config) requested(secret string) bool {
	return slices.ContainsFunc(c.Plugins, func(p Plugin) bool {
		return p.Enabled && contains(p.Supervisor.Secrets, secret)
	}) || c.injects(secret)
}

// injects reports whether the proxy of an enabled plugin injects a secret.
func (c *Config) injects(secret string) bool {
	return slices.ContainsFunc(c.Plugins, func(p Plugin) bool {
		return p.Enabled && len(injected(&p.Supervisor, secret)) > 0
	})
}

// injected returns the credentials of a plugin's proxy that hold a secret.
func injected(p *supervisor.Plugin, secret string) (all []*egress.Credential) {
	if p.Network == nil {
		return nil
	}
	for i := range p.Network.Inject {
		if c := &p.Network.Inject[i]; c.Secret == secret && !c.PerUser {
			all = append(all, c)
		}
	}
	return all
}

func contains(values map[string]string, name string) bool {
	_, ok := values[name]
	return ok
}
