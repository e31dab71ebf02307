package config

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/sdk/tool"
)

// warnMissing warns about a path that a plugin gets and that does not exist.
func (d *decoder) warnMissing(w word, use, path string) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) || isSocket(path) {
		return
	}
	var beside []string
	entries, _ := os.ReadDir(filepath.Dir(path)) // none if it does not exist either
	for _, entry := range entries {
		beside = append(beside, entry.Name())
	}
	d.warn(w.expr.Range(), warnMissing, "%s: %s does not exist, so it gives the plugin nothing.%s Correct it, or create it before the plugin starts.",
		use, quote(w.expr, w.text), diag.DidYouMean(filepath.Base(path), beside))
}

// warnUnused warns about sandboxes that no plugin has, and secrets that no plugin may request.
func (d *decoder) warnUnused(root rootBlock) {
	if len(root.Plugins) == 0 {
		return
	}
	for _, b := range root.Sandboxes {
		if !slices.Contains(d.sandboxesUsed, b.Name) {
			d.warn(b.NameRange, warnUnused, "no plugin uses sandbox %q. Write sandbox = %q in a plugin block, or remove it.%s", b.Name, b.Name,
				diag.DidYouMean(b.Name, []string{defaultSandbox}))
		}
	}
	for _, b := range root.Secrets {
		if !slices.Contains(d.secretsUsed, b.Name) {
			d.warn(b.NameRange, warnUnused, "no plugin may request secret %q. List it in secrets of a plugin block, or remove it.", b.Name)
		}
	}
}

// leastPerDay is the size of the journal of some hundred calls.
const leastPerDay = tool.MiB

// warnJournal warns about a journal that cannot keep its rows as long as it says.
func (d *decoder) warnJournal(j Journal, block journalBlock) {
	at, days := cmp.Or(block.MaxSize, block.Keep), int64(j.Keep/day)
	if at == nil || j.MaxSize == 0 || int64(j.MaxSize)/int64(leastPerDay) >= days {
		return
	}
	d.warn(at.Expr.Range(), warnJournal, "journal: max_size removes rows long before keep says: %s is less than %s a day for %d days. Raise max_size, or lower keep.",
		j.MaxSize, leastPerDay, days)
}
