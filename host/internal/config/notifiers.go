package config

import (
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/decide/notify"
	"github.com/toolhost/toolhost/sdk/tool"
)

// notifiers reads the notify blocks. secret("name") is known in them, as in the settings of plugins.
func (d *decoder) notifiers(blocks []notifyBlock) (all []notify.Notifier) {
	everywhere := d.ctx
	defer func() { d.ctx = everywhere }()
	d.ctx = everywhere.NewChild()
	d.ctx.Functions = maps.Clone(everywhere.Functions)
	d.ctx.Functions["secret"] = d.secretFunction()
	firsts := make(map[string]hcl.Range)
	for _, block := range blocks {
		d.unique("notify block", block.Name, block.NameRange, firsts)
		if !tool.ValidPluginName(block.Name) {
			d.mistake(block.NameRange, "Invalid name", "%q cannot be a notifier's name: expected a lower-case letter, then at most 63 lower-case letters, digits, _ and -.", block.Name)
		}
		all = append(all, d.notifier(block))
	}
	return all
}

// notifier reads one notify block.
func (d *decoder) notifier(block notifyBlock) notify.Notifier {
	n := notify.Notifier{
		Name: block.Name, Command: d.argv(block.Command), Details: d.flag(block.Details, false), Decided: d.flag(block.Decided, false),
	}
	if len(n.Command) > 0 {
		d.notified = append(d.notified, n.Command[0])
	}
	n.Remind, _ = d.durationWithin(block.Remind, 10*time.Second, day, `a duration from "10s" to "24h"`)
	for _, w := range d.words(block.Users, `a list of users such as ["ada"]`) {
		if slices.Contains(n.Users, w.text) {
			d.mistake(w.expr.Range(), "Duplicate entry", "%s is already in the list.", quote(w.expr, w.text))
			continue
		}
		d.warnUser(w.expr, w.text, "it has no calls to tell about")
		n.Users = append(n.Users, w.text)
	}
	switch command, webhook := !d.absent(block.Command), !d.absent(block.Webhook); {
	case command && webhook:
		d.mistake(block.Webhook.NameRange, "Two ways to notify", "A command is at %s. Write one notify block for each.", diag.Place(block.Command.NameRange))
	case !command && !webhook:
		d.mistake(block.Range, "Nothing to notify", "Notifier %q needs webhook = \"https://...\", or a command: a program and its arguments.", block.Name)
	case webhook:
		d.webhook(block, &n)
	case block.Secret != nil:
		d.mistake(block.Secret.NameRange, "Useless secret", "Only messages to a webhook are signed. Remove secret.")
	}
	return n
}

// webhook reads the address and the secret of a webhook.
func (d *decoder) webhook(block notifyBlock, n *notify.Notifier) {
	if s, ok := d.text(block.Webhook, `a URL such as "https://chat.example.com/hook"`); ok {
		if _, err := auth.CheckAddress(s); err != nil {
			d.mistake(block.Webhook.Expr.Range(), "Not a webhook", "Expected a URL such as \"https://chat.example.com/hook\": %v.", err)
		}
		n.Webhook = s
	}
	if d.absent(block.Secret) {
		d.mistake(block.Range, "Missing secret", "The receiver of notifier %q knows by the signature that a message is from this host. Add secret = env(\"NAME\"), file(\"path\") or secret(\"name\").", block.Name)
		return
	}
	if s, ok := d.text(block.Secret, "a text"); ok {
		d.secrets.add(s)
		n.Secret = notify.Secret(s)
		if err := n.Secret.Check(); err != nil {
			d.mistake(block.Secret.Expr.Range(), "Unusable secret", "Expected at least 24 random bytes, or whsec_ and their base64: %v.", err)
		}
	}
}
